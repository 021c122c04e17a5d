//! Matches over the nodes of plans that name each node, so that the compiler tells who has forgotten a new one.
//!
//! Responsible for: finding arms that take whatever is left, in sources as rustfmt writes them.
//! Not responsible for: `matches!` and `if let`, which ask for one kind of node and say so.

/// The arms of a file that take any other node of a plan, as faults.
pub(crate) fn check(name: &str, code: &str) -> Vec<String> {
    let lines: Vec<&str> = code.lines().collect();
    let begins = |line: &str| line.ends_with('{') && line.split(|c: char| !c.is_alphanumeric()).any(|w| w == "match");
    let matches = lines.iter().enumerate().filter(|(_, line)| begins(line));
    let faults = matches.filter_map(|(at, line)| {
        let depth = indentation(line);
        let inside = lines[at + 1..].iter().take_while(|line| line.trim().is_empty() || indentation(line) > depth);
        let arms = || inside.clone().filter(|line| indentation(line) == depth + 4).map(|line| line.trim_start());
        let any = arms().find(|arm| takes_any(arm))?;
        arms().any(names_node).then(|| format!("{name}:{}: an arm `{any}` beside arms of plan nodes", at + 1))
    });
    faults.collect()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn names_node(arm: &str) -> bool {
    arm.trim_start_matches(['|', '&', '(', ' ']).starts_with("Node::")
}

/// Whether an arm is of the form `_ => …` or `name => …`, and so takes whatever the others leave.
fn takes_any(arm: &str) -> bool {
    let Some((pattern, _)) = arm.split_once(" =>") else { return false };
    pattern.starts_with(|c: char| c.is_lowercase() || c == '_')
        && pattern.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(arms: &str) -> usize {
        check("a.rs", &format!("fn f(node: &Node) {{\n    match node {{\n{arms}\n    }}\n}}\n")).len()
    }

    #[test]
    fn an_arm_that_hides_nodes_is_a_fault() {
        assert_eq!(
            faults("        Node::Sort(_) => true,\n        Node::Limit(_)\n        | Node::OneRow => false,"),
            0
        );
        assert_eq!(faults("        Node::Sort(_) => true,\n        _ => false,"), 1);
        assert_eq!(faults("        Node::Sort(_) => true,\n        other => other.is_join(),"), 1);
        assert_eq!(faults("        Node::Sort(_) if a => {\n            true\n        }\n        _ => false,"), 1);
    }

    #[test]
    fn other_matches_may_have_a_rest() {
        assert_eq!(faults("        Code::Slot(_) => true,\n        _ => false,"), 0);
        assert_eq!(
            faults(
                "        Node::Sort(n) => match n.at {\n            0 => true,\n            _ => false,\n        },"
            ),
            0
        );
    }
}
