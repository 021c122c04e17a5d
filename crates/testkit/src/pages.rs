//! The server's pages over HTTP, asked for by curl.

use std::process::Command;

/// Status and body of a GET, or `None` if nobody answers.
pub fn get(port: u16, path: &str) -> Option<(u16, String)> {
    let url = format!("http://127.0.0.1:{port}{path}");
    let output = Command::new("curl").args(["-sS", "--max-time", "10", "-w", "\n%{http_code}", &url]).output();
    let output = output.expect("curl is installed");
    let text = String::from_utf8(output.stdout).expect("pages are UTF-8");
    let (body, status) = text.rsplit_once('\n')?;
    Some((status.parse().ok().filter(|&status| status != 0)?, body.to_owned()))
}

/// The value of a sample on the page of metrics.
pub fn sample(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().expect("samples are numbers")
}
