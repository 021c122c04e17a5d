//! What a pattern of LIKE says of how a text begins: the ends of a range of texts.

use base::Result;
use types::Datum;
use types::oid::TEXT;

use super::Function;
use super::entry::{immutable, mismatched};

/// What a pattern demands of the beginning of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct LikePrefix {
    /// The first text with this beginning.
    pub first: String,
    /// What is behind the last one; `None` if nothing is.
    pub behind: Option<String>,
    /// The pattern demands nothing else.
    pub is_all: bool,
}

impl LikePrefix {
    /// Of a pattern of LIKE; `None` if it does not say how a text begins.
    pub fn of(pattern: &str) -> Option<LikePrefix> {
        let (mut first, mut rest) = (String::new(), pattern.chars());
        let mut wildcard = None;
        while let Some(character) = rest.next() {
            match character {
                '%' | '_' => {
                    wildcard = Some(character);
                    break;
                }
                // A pattern that ends with the escape is an error, which the test tells of.
                '\\' => first.push(rest.next()?),
                other => first.push(other),
            }
        }
        let mut behind = first.clone();
        // Texts are in the order of their code points, as their bytes are.
        let behind = loop {
            let Some(last) = behind.pop() else { break None };
            let next = ((last as u32 + 1)..=0x10_ffff).find_map(char::from_u32);
            if let Some(next) = next {
                behind.push(next);
                break Some(behind);
            }
        };
        let is_all = wildcard == Some('%') && rest.all(|c| c == '%') && behind.is_some();
        (!first.is_empty()).then_some(LikePrefix { first, behind, is_all })
    }
}

/// The first text that begins as a pattern says.
pub static LIKE_FIRST: Function =
    immutable(9546, "first like", &[TEXT], TEXT, |_, args| end(args, |prefix| Some(prefix.first)));

/// What is behind the last text that begins as a pattern says.
pub static LIKE_BEHIND: Function =
    immutable(9547, "behind like", &[TEXT], TEXT, |_, args| end(args, |prefix| prefix.behind));

fn end(args: &[Datum], of: fn(LikePrefix) -> Option<String>) -> Result<Datum> {
    let [Datum::Text(pattern)] = args else { return mismatched(args) };
    Ok(LikePrefix::of(pattern).and_then(of).map_or(Datum::Null, |text| Datum::Text(text.as_str().into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_say_how_texts_begin() {
        let ends = |pattern: &str| LikePrefix::of(pattern).map(|p| (p.first, p.behind.unwrap_or_default(), p.is_all));
        let is = |first: &str, behind: &str, is_all| Some((first.to_owned(), behind.to_owned(), is_all));
        assert_eq!(ends("ab%"), is("ab", "ac", true));
        assert_eq!(ends("ab%%"), is("ab", "ac", true));
        assert_eq!(ends("ab%c"), is("ab", "ac", false));
        assert_eq!(ends("ab"), is("ab", "ac", false));
        assert_eq!(ends(r"a\%b_"), is("a%b", "a%c", false));
        // The last character has no next one, and surrogates are none.
        assert_eq!(ends("a\u{10ffff}%"), is("a\u{10ffff}", "b", true));
        assert_eq!(ends("\u{d7ff}%"), is("\u{d7ff}", "\u{e000}", true));
        assert_eq!(ends("\u{10ffff}%"), is("\u{10ffff}", "", false));
        for pattern in ["", "%a", "_a", "a\\"] {
            assert_eq!(ends(pattern), None, "{pattern}");
        }
    }
}
