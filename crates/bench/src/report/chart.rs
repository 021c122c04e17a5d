//! Charts as SVG: lines over clients or seconds, columns of stacked parts, bars with a spread.
//!
//! Responsible for: axes with round numbers from zero, names beside lines that do not lie on each other, forms that are told apart
//! without colours.
//! Not responsible for: colours (classes `c0`… of the page), what is shown.
//! Invariants: nothing is drawn outside of the picture; text is at least 12 units high, and a page does not shrink pictures.

use std::fmt::Write;

use super::html::escape;
use crate::table::grouped;

/// Width of all charts.
pub const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 300.0;
/// Left of the axis: names of ticks.
const LEFT: f64 = 58.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;
/// Height of a line of text.
const LINE: f64 = 15.0;
/// Colours that the page has.
pub const COLOURS: usize = 8;
const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];

/// How numbers of an axis are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 12k.
    Count,
    /// Milliseconds; lines that go over several powers of ten have a logarithmic axis.
    Time,
    /// Bytes as MiB or GiB.
    Bytes,
    /// 1.25×.
    Ratio,
}

impl Unit {
    /// A number beside an axis.
    pub fn tick(self, value: f64) -> String {
        match self {
            Unit::Ratio => format!("{}×", trimmed(value, 2)),
            Unit::Bytes if value >= f64::from(1 << 30) => format!("{} GiB", trimmed(value / f64::from(1 << 30), 2)),
            Unit::Bytes => format!("{} MiB", trimmed(value / f64::from(1 << 20), 1)),
            Unit::Count | Unit::Time if value >= 1e6 => format!("{}M", trimmed(value / 1e6, 2)),
            Unit::Count | Unit::Time if value >= 10_000.0 => format!("{}k", trimmed(value / 1e3, 1)),
            Unit::Count | Unit::Time if value >= 1000.0 => grouped(value),
            Unit::Count | Unit::Time => trimmed(value, 3),
        }
    }
}

/// A number beside an axis that goes up to `top`: all in the same unit.
fn beside_axis(unit: Unit, value: f64, top: f64) -> String {
    match unit {
        Unit::Count | Unit::Time if (10_000.0..1e6).contains(&top) && value >= 1000.0 => {
            format!("{}k", trimmed(value / 1e3, 1))
        }
        _ => unit.tick(value),
    }
}

/// Without zeros at its end.
fn trimmed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// From zero to the first round number that is not below `max`: four to six numbers.
pub fn ticks(max: f64, unit: Unit) -> Vec<f64> {
    let max = if max > 0.0 && max.is_finite() { max } else { 1.0 };
    // Round numbers of bytes are those of their own unit.
    let scale = match unit {
        Unit::Bytes if max >= f64::from(1 << 30) => f64::from(1 << 30),
        Unit::Bytes => f64::from(1 << 20),
        _ => 1.0,
    };
    let wanted = max / scale / 5.0;
    let power = 10f64.powf(wanted.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let step = steps.into_iter().map(|s| s * power).find(|s| *s >= wanted * (1.0 - 1e-9)).unwrap_or(10.0 * power);
    let count = (max / scale / step - 1e-9).ceil().max(1.0) as usize;
    (0..=count).map(|n| n as f64 * step * scale).collect()
}

/// Powers of ten around what lies from `min` to `max`.
pub fn powers(min: f64, max: f64) -> Vec<f64> {
    let (from, to) = (min.log10().floor() as i32, max.log10().ceil() as i32);
    (from..=to.max(from + 1)).map(|power| 10f64.powi(power)).collect()
}

/// The numbers beside an axis, and where values lie between its ends, from 0 to 1.
struct Scale {
    ticks: Vec<f64>,
    logarithmic: bool,
}

impl Scale {
    /// For values of which the least above zero and the greatest are known.
    fn of(min: f64, max: f64, unit: Unit) -> Scale {
        let logarithmic = unit == Unit::Time && min > 0.0 && max / min > 40.0;
        Scale { ticks: if logarithmic { powers(min, max) } else { ticks(max, unit) }, logarithmic }
    }

    fn share(&self, value: f64) -> f64 {
        let (first, last) = (self.ticks[0], *self.ticks.last().unwrap_or(&1.0));
        if !self.logarithmic {
            return value / last;
        }
        (value.max(first).log10() - first.log10()) / (last.log10() - first.log10())
    }
}

/// What lies below lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// Numbers of clients, each twice the one before.
    Clients,
    /// Time.
    Seconds,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dot {
    /// Across.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// The least and the greatest that was measured.
    pub spread: Option<(f64, f64)>,
    /// Not to be relied on.
    pub hollow: bool,
}

/// A line.
pub struct Line {
    /// Beside it.
    pub name: String,
    /// Colour and form.
    pub slot: usize,
    /// From left to right.
    pub dots: Vec<Dot>,
}

/// A part of a column.
pub struct Part {
    /// In the legend.
    pub name: &'static str,
    /// How it is filled: the page has `p0`, `p1` and `p2`.
    pub class: &'static str,
}

/// A column for each series in each category.
pub struct Column {
    /// Its category.
    pub category: usize,
    /// Colour.
    pub slot: usize,
    /// A value for each [`Part`], from below.
    pub parts: Vec<f64>,
}

/// A bar that lies.
pub struct Bar {
    /// At its left.
    pub name: String,
    /// Colour.
    pub slot: usize,
    /// Its length.
    pub value: f64,
    /// The least and the greatest that was measured.
    pub spread: Option<(f64, f64)>,
    /// At its end.
    pub text: String,
}

fn out(text: &mut String, piece: std::fmt::Arguments<'_>) {
    text.write_fmt(piece).expect("a string takes every character");
}

macro_rules! put {
    ($text:expr, $($piece:tt)*) => { out(&mut $text, format_args!($($piece)*)) };
}

/// A picture around what is drawn.
fn picture(title: &str, describes: &str, height: f64, inside: &str) -> String {
    let (title, describes) = (escape(title), escape(describes));
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" class=\"chart\">\
         <title>{title}</title><desc>{describes}</desc><text class=\"h\" x=\"4\" y=\"16\">{title}</text>\n{inside}</svg>\n"
    )
}

/// Splits a name where it has spaces, so that lines are not longer than they must.
fn wrap(name: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    // A word that is longer than a line ends with dots.
    for line in &mut lines {
        if line.chars().count() > width {
            *line = line.chars().take(width - 1).chain(['…']).collect();
        }
    }
    lines
}

fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.9
}

/// The form of a dot.
fn marker(slot: usize, x: f64, y: f64, hollow: bool) -> String {
    let path = match slot % 6 {
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x - 4.0),
        1 => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        2 => format!("M{x:.1} {:.1}l4.6 8h-9.2z", y - 5.0),
        3 => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
        4 => format!("M{x:.1} {:.1}l4.6 -8h-9.2z", y + 5.0),
        _ => format!("M{:.1} {:.1}h3v-3h3v3h3v3h-3v3h-3v-3h-3z", x - 4.5, y - 1.5),
    };
    format!("<path class=\"m c{}{}\" d=\"{path}\"/>", slot % COLOURS, if hollow { " hollow" } else { "" })
}

fn whisker(slot: usize, at: f64, low: f64, high: f64, upright: bool) -> String {
    let d = if upright {
        format!("M{:.1} {low:.1}h8m-4 0V{high:.1}m-4 0h8", at - 4.0)
    } else {
        format!("M{low:.1} {:.1}v8m0 -4H{high:.1}m0 -4v8", at - 4.0)
    };
    format!("<path class=\"w c{}\" d=\"{d}\"/>\n", slot % COLOURS)
}

/// Lines that go across and their numbers at the left.
fn upward(inside: &mut String, scale: &Scale, unit: Unit, left: f64, right: f64, height: f64) {
    let top = *scale.ticks.last().unwrap_or(&1.0);
    for &tick in &scale.ticks {
        let y = height - BOTTOM - scale.share(tick) * (height - BOTTOM - TOP);
        let class = if tick == scale.ticks[0] { "axis" } else { "grid" };
        put!(*inside, "<path class=\"{class}\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>");
        put!(
            *inside,
            "<text class=\"e\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
            left - 7.0,
            y + 4.0,
            beside_axis(unit, tick, top)
        );
    }
}

/// Room for the numbers of an axis.
fn margin(ticks: &[f64], unit: Unit) -> f64 {
    ticks.iter().map(|tick| text_width(&unit.tick(*tick)) + 14.0).fold(LEFT, f64::max)
}

/// Lines over clients or seconds, each with its name at its right end.
pub fn lines(title: &str, unit: Unit, across: Across, lines: &[Line]) -> String {
    let names: Vec<Vec<String>> = lines.iter().map(|line| wrap(&line.name, 19)).collect();
    let widest = names.iter().flatten().map(|name| text_width(name)).fold(40.0, f64::max);
    let dots = || lines.iter().flat_map(|line| &line.dots);
    let highest = dots().map(|dot| dot.spread.map_or(dot.y, |(_, high)| high.max(dot.y))).fold(0.0, f64::max);
    let lowest =
        dots().map(|dot| dot.spread.map_or(dot.y, |(low, _)| low)).filter(|y| *y > 0.0).fold(f64::MAX, f64::min);
    let scale = Scale::of(lowest, highest, unit);
    let title = if scale.logarithmic { format!("{title}, logarithmic") } else { title.to_string() };
    let (left, right) = (margin(&scale.ticks, unit), WIDTH - widest - 52.0);
    let needed: f64 = names.iter().map(|name| name.len() as f64 * LINE + 4.0).sum();
    let height = HEIGHT.max(TOP + BOTTOM + needed);
    let floor = height - BOTTOM;
    let up = |value: f64| floor - scale.share(value) * (floor - TOP);
    let place = |x: f64| if across == Across::Clients { x.max(1.0).log2() } else { x };
    let (from, to) = match across {
        Across::Clients => {
            dots().map(|d| place(d.x)).fold((f64::MAX, 0.0), |(a, b), x| (f64::min(a, x), f64::max(b, x)))
        }
        Across::Seconds => (0.0, dots().map(|d| d.x).fold(1.0, f64::max)),
    };
    // Clients are not on the axis itself.
    let inset = if across == Across::Clients { 14.0 } else { 0.0 };
    let along = |x: f64| left + inset + (place(x) - from) / (to - from).max(1e-9) * (right - left - 2.0 * inset);
    let mut inside = String::new();
    upward(&mut inside, &scale, unit, left, right, height);
    let marks: Vec<f64> = match across {
        Across::Seconds => ticks(to, Unit::Count).into_iter().filter(|tick| *tick <= to * 1.001).collect(),
        Across::Clients => {
            let mut all: Vec<f64> = dots().map(|dot| dot.x).collect();
            all.sort_by(f64::total_cmp);
            all.dedup();
            all
        }
    };
    let mut free = f64::MIN;
    for mark in marks {
        let (x, text) = (along(mark), Unit::Count.tick(mark));
        put!(inside, "<path class=\"axis\" d=\"M{x:.1} {floor:.1}v5\"/>");
        // Where numbers would touch, the tick stands alone.
        if x - text_width(&text) / 2.0 >= free {
            put!(inside, "<text class=\"m\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>\n", floor + 19.0);
            free = x + text_width(&text) / 2.0 + 6.0;
        }
    }
    let below = if across == Across::Clients { "clients" } else { "seconds" };
    put!(inside, "<text class=\"m\" x=\"{:.1}\" y=\"{:.1}\">{below}</text>\n", left.midpoint(right), height - 8.0);
    for line in lines {
        draw_line(&mut inside, line, across, &along, &up);
    }
    labels_of_lines(&mut inside, lines, &names, right, height, &along, &up);
    picture(&title, &describe(lines, unit, below), height, &inside)
}

fn draw_line(inside: &mut String, line: &Line, across: Across, along: &dyn Fn(f64) -> f64, up: &dyn Fn(f64) -> f64) {
    for dot in &line.dots {
        if let Some((low, high)) = dot.spread.filter(|(low, high)| high > low) {
            inside.push_str(&whisker(line.slot, along(dot.x), up(low), up(high), true));
        }
    }
    let path: Vec<String> = line.dots.iter().map(|dot| format!("{:.1} {:.1}", along(dot.x), up(dot.y))).collect();
    let dash = DASHES[line.slot % DASHES.len()];
    let class = format!("l c{}", line.slot % COLOURS);
    put!(*inside, "<path class=\"{class}\" stroke-dasharray=\"{dash}\" d=\"M{}\"/>\n", path.join("L"));
    if across == Across::Clients {
        for dot in &line.dots {
            inside.push_str(&marker(line.slot, along(dot.x), up(dot.y), dot.hollow));
        }
        inside.push('\n');
    }
}

/// Names at the right, as near to the ends of lines as they can be.
fn labels_of_lines(
    inside: &mut String,
    lines: &[Line],
    names: &[Vec<String>],
    right: f64,
    height: f64,
    along: &dyn Fn(f64) -> f64,
    up: &dyn Fn(f64) -> f64,
) {
    let mut order: Vec<usize> = (0..lines.len()).filter(|&n| !lines[n].dots.is_empty()).collect();
    let end = |n: usize| lines[n].dots.last().map_or((0.0, 0.0), |dot| (along(dot.x), up(dot.y)));
    order.sort_by(|&a, &b| end(a).1.total_cmp(&end(b).1));
    let tall = |n: usize| names[n].len() as f64 * LINE + 4.0;
    let mut tops: Vec<f64> = order.iter().map(|&n| end(n).1 - LINE / 2.0).collect();
    let mut free = TOP - 8.0;
    for (at, &n) in order.iter().enumerate() {
        tops[at] = tops[at].max(free);
        free = tops[at] + tall(n);
    }
    let mut limit = height - BOTTOM + 12.0;
    for (at, &n) in order.iter().enumerate().rev() {
        tops[at] = tops[at].min(limit - tall(n));
        limit = tops[at];
    }
    for (at, &n) in order.iter().enumerate() {
        let ((x, y), slot, middle) = (end(n), lines[n].slot, tops[at] + LINE / 2.0);
        let (class, dash) = (slot % COLOURS, DASHES[slot % DASHES.len()]);
        let start = right + 14.0;
        put!(*inside, "<path class=\"lead\" d=\"M{:.1} {y:.1}L{:.1} {middle:.1}\"/>", x + 6.0, start - 2.0);
        put!(*inside, "<path class=\"l c{class}\" stroke-dasharray=\"{dash}\" d=\"M{start:.1} {middle:.1}h24\"/>");
        inside.push_str(&marker(slot, start + 12.0, middle, false));
        for (row, name) in names[n].iter().enumerate() {
            let y = middle + 4.0 + row as f64 * LINE;
            put!(*inside, "<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>\n", start + 30.0, escape(name));
        }
    }
}

/// What somebody who does not see the lines should hear.
fn describe(lines: &[Line], unit: Unit, across: &str) -> String {
    let say = |line: &Line| {
        let (first, last) = (line.dots.first()?, line.dots.last()?);
        let best = line.dots.iter().map(|dot| dot.y).fold(0.0, f64::max);
        let (from, to) = (trimmed(first.x, 0), trimmed(last.x, 0));
        Some(format!(
            "{}: {} at {from} {across}, {} at {to}, at most {}",
            line.name,
            unit.tick(first.y),
            unit.tick(last.y),
            unit.tick(best)
        ))
    };
    lines.iter().filter_map(say).collect::<Vec<_>>().join("; ")
}

/// Columns of stacked parts. Below them stand the categories, at the right what colours and parts are.
pub fn columns(
    title: &str,
    unit: Unit,
    across: &str,
    categories: &[String],
    series: &[(usize, String)],
    parts: &[Part],
    columns: &[Column],
) -> String {
    let names: Vec<Vec<String>> = series.iter().map(|(_, name)| wrap(name, 19)).collect();
    let all = names.iter().flatten().map(String::as_str).chain(parts.iter().map(|part| part.name));
    let widest = all.map(text_width).fold(40.0, f64::max);
    let scale = Scale::of(0.0, columns.iter().map(|c| c.parts.iter().sum()).fold(0.0, f64::max), unit);
    let (left, right) = (margin(&scale.ticks, unit), WIDTH - widest - 52.0);
    let needed: f64 = names.iter().map(|name| name.len() as f64 * LINE + 4.0).sum();
    let height = HEIGHT.max(TOP + BOTTOM + needed + 12.0 + (LINE + 4.0) * parts.len() as f64);
    let floor = height - BOTTOM;
    let wide = (right - left) / categories.len().max(1) as f64;
    let bar = (wide * 0.8 / series.len().max(1) as f64).min(40.0);
    let mut inside = String::new();
    upward(&mut inside, &scale, unit, left, right, height);
    for (at, category) in categories.iter().enumerate() {
        let x = left + (at as f64 + 0.5) * wide;
        let text = escape(category);
        put!(inside, "<text class=\"m\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>\n", floor + 19.0);
    }
    for column in columns {
        let nth = series.iter().position(|(slot, _)| *slot == column.slot).unwrap_or(0) as f64;
        let x = left + (column.category as f64 + 0.5) * wide + (nth - series.len() as f64 / 2.0) * bar;
        let mut sum = 0.0;
        for (part, value) in parts.iter().zip(&column.parts) {
            let tall = scale.share(*value) * (floor - TOP);
            let y = floor - scale.share(sum) * (floor - TOP) - tall;
            let class = format!("{} c{}", part.class, column.slot % COLOURS);
            let wide = (bar - 1.5).max(1.0);
            put!(
                inside,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\"/>"
            );
            sum += value;
        }
        inside.push('\n');
    }
    put!(
        inside,
        "<text class=\"m\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
        left.midpoint(right),
        height - 8.0,
        escape(across)
    );
    let (start, mut y) = (right + 16.0, TOP + 6.0);
    for ((slot, _), name) in series.iter().zip(&names) {
        let class = slot % COLOURS;
        put!(inside, "<rect class=\"p0 c{class}\" x=\"{start:.1}\" y=\"{:.1}\" width=\"22\" height=\"10\"/>", y - 5.0);
        for line in name {
            put!(inside, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n", start + 30.0, y + 4.0, escape(line));
            y += LINE;
        }
        y += 4.0;
    }
    y += 12.0;
    // Parts from above, as they lie in the columns.
    for part in parts.iter().rev() {
        let class = part.class;
        put!(inside, "<rect class=\"{class} any\" x=\"{start:.1}\" y=\"{:.1}\" width=\"22\" height=\"10\"/>", y - 5.0);
        put!(inside, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n", start + 30.0, y + 4.0, part.name);
        y += LINE + 4.0;
    }
    picture(title, &format!("{} columns over {}: {}", columns.len(), across, categories.join(", ")), height, &inside)
}

/// Bars under each other, in groups with a title each.
pub fn bars(title: &str, unit: Unit, groups: &[(String, Vec<Bar>)]) -> String {
    let all = || groups.iter().flat_map(|(_, bars)| bars);
    let highest = all().map(|bar| bar.spread.map_or(bar.value, |(_, high)| high.max(bar.value))).fold(0.0, f64::max);
    let ticks = ticks(highest, unit);
    let names = all().flat_map(|bar| wrap(&bar.name, NAME));
    let left = names.map(|name| text_width(&name) + 16.0).fold(70.0, f64::max);
    let right = WIDTH - all().map(|bar| text_width(&bar.text) + 24.0).fold(40.0, f64::max);
    let top = *ticks.last().unwrap_or(&1.0);
    let along = |value: f64| left + value / top * (right - left);
    let rows: f64 = groups.iter().map(|(name, bars)| heading(name) + bars.iter().map(row).sum::<f64>() + 8.0).sum();
    let (floor, mut inside) = (TOP + rows, String::new());
    for &tick in &ticks {
        let (x, class) = (along(tick), if tick == 0.0 { "axis" } else { "grid" });
        put!(inside, "<path class=\"{class}\" d=\"M{x:.1} {TOP}V{floor:.1}\"/>");
        put!(
            inside,
            "<text class=\"m\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>\n",
            floor + 16.0,
            beside_axis(unit, tick, top)
        );
    }
    if unit == Unit::Ratio && top > 1.0 {
        put!(inside, "<path class=\"one\" d=\"M{:.1} {TOP}V{floor:.1}\"/>\n", along(1.0));
    }
    let mut y = TOP;
    for (name, bars) in groups {
        for (at, line) in wrap(name, HEADING).iter().enumerate() {
            let y = y + 14.0 + at as f64 * LINE;
            put!(inside, "<text class=\"b\" x=\"4\" y=\"{y:.1}\">{}</text>\n", escape(line));
        }
        y += heading(name);
        for bar in bars {
            let (long, class) = ((along(bar.value) - left).max(0.0), bar.slot % COLOURS);
            for (at, name) in wrap(&bar.name, NAME).iter().enumerate() {
                let (x, y) = (left - 8.0, y + 14.0 + at as f64 * LINE);
                put!(inside, "<text class=\"e\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(name));
            }
            put!(
                inside,
                "<rect class=\"p0 c{class}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{long:.1}\" height=\"14\"/>",
                y + 3.0
            );
            let mut end = along(bar.value);
            if let Some((low, high)) = bar.spread.filter(|(low, high)| high > low) {
                let (from, to) = (along(low), along(high));
                put!(inside, "<path class=\"w ink\" d=\"M{from:.1} {:.1}v8m0 -4H{to:.1}m0 -4v8\"/>", y + 6.0);
                end = end.max(to);
            }
            put!(inside, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n", end + 8.0, y + 14.0, escape(&bar.text));
            y += row(bar);
        }
        y += 8.0;
    }
    let say: Vec<String> = all().map(|bar| format!("{} {}", bar.name, bar.text)).collect();
    picture(title, &say.join("; "), floor + 24.0, &inside)
}

/// Most characters of a line above a group of bars, which is bold.
const HEADING: usize = 74;

fn heading(name: &str) -> f64 {
    let lines = wrap(name, HEADING).len() as f64;
    if lines > 0.0 { 5.0 + lines * LINE } else { 0.0 }
}

/// Most characters of a line of a bar's name.
const NAME: usize = 28;

/// Height of a bar with its name.
fn row(bar: &Bar) -> f64 {
    19.0 + LINE * wrap(&bar.name, NAME).len().saturating_sub(1) as f64
}
