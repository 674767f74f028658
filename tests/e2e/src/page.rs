//! The examples of a page of documentation, as they are to be run.
//!
//! Owns the marks: a fenced `yaml` or `sh` block right after the line `<!-- run -->` is an example, and a `text` block
//! right after a `sh` one is what it has to print. Runs nothing.

use anyhow::{Result, bail};

/// Stands before a block that is to be run.
const MARK: &str = "<!-- run -->";

/// Stands for any text within a line of expected output.
const ANYTHING: char = '…';

/// One example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The line of its fence, from 1.
    pub line: usize,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A manifest to apply.
    Apply(String),
    /// A script to run, and what it has to print if the page says so.
    Run {
        script: String,
        output: Option<String>,
    },
}

/// The examples of a page, in order.
///
/// # Errors
/// A mark stands before no `yaml` or `sh` block, or a block does not end.
pub fn parse_examples(page: &str) -> Result<Vec<Example>> {
    let mut lines = page.lines().zip(1..);
    let mut examples: Vec<Example> = Vec::new();
    let (mut is_marked, mut may_print) = (false, false);
    while let Some((line, number)) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let Some(language) = line.strip_prefix("```") else {
            if is_marked {
                bail!("line {number}: after {MARK} comes a block of yaml or sh");
            }
            is_marked = line == MARK;
            may_print = false;
            continue;
        };
        let mut block = String::new();
        loop {
            match lines.next() {
                Some(("```", _)) => break,
                Some((line, _)) => block.extend([line, "\n"]),
                None => bail!("line {number}: the block does not end"),
            }
        }
        let action = match (language, is_marked) {
            ("yaml", true) => Action::Apply(block),
            ("sh", true) => Action::Run {
                script: block,
                output: None,
            },
            (_, true) => bail!("line {number}: {language} cannot be run; yaml and sh can"),
            ("text", false) if may_print => {
                if let Some(Action::Run { output, .. }) =
                    examples.last_mut().map(|example| &mut example.action)
                {
                    *output = Some(block);
                }
                may_print = false;
                continue;
            }
            (_, false) => {
                may_print = false;
                continue;
            }
        };
        may_print = matches!(action, Action::Run { .. });
        is_marked = false;
        examples.push(Example {
            line: number,
            action,
        });
    }
    if is_marked {
        bail!("the page ends after {MARK}");
    }
    Ok(examples)
}

/// Whether what was printed is what was expected: line by line, with `…` for any text.
#[must_use]
pub fn is_as_expected(expected: &str, printed: &str) -> bool {
    let (expected, printed) = (expected.trim_end(), printed.trim_end());
    let same_length = expected.lines().count() == printed.lines().count();
    let mut pairs = expected.lines().zip(printed.lines());
    same_length && pairs.all(|(pattern, line)| fits(pattern.trim_end(), line.trim_end()))
}

fn fits(pattern: &str, line: &str) -> bool {
    let Some((before, after)) = pattern.split_once(ANYTHING) else {
        return pattern == line;
    };
    let Some(rest) = line.strip_prefix(before) else {
        return false;
    };
    let mut starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts.any(|at| fits(after, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_blocks_are_examples_and_text_is_their_output() {
        let page = "# A\n```yaml\nnot: run\n```\n\n<!-- run -->\n```yaml\nkind: Pod\n```\n\n\
                    <!-- run -->\n```sh\necho a\n\n```\n\n```text\na\n```\n\n```text\nmore\n```\n";
        let run = Action::Run {
            script: "echo a\n\n".to_owned(),
            output: Some("a\n".to_owned()),
        };
        let expected = [(7, Action::Apply("kind: Pod\n".to_owned())), (12, run)];
        let expected = expected.map(|(line, action)| Example { line, action });
        assert_eq!(parse_examples(page).unwrap(), expected);
    }

    #[test]
    fn words_between_a_script_and_a_text_part_them() {
        let page = "<!-- run -->\n```sh\ntrue\n```\nAnd:\n```text\na\n```\n";
        let examples = parse_examples(page).unwrap();
        assert!(matches!(
            &examples[0].action,
            Action::Run { output: None, .. }
        ));
    }

    #[test]
    fn a_mark_that_marks_nothing_is_a_fault() {
        for (page, fault) in [
            ("<!-- run -->\nwords\n", "line 2: after <!-- run -->"),
            ("<!-- run -->\n```rust\n```\n", "line 2: rust cannot be run"),
            ("<!-- run -->\n", "the page ends"),
            ("```sh\ntrue\n", "line 1: the block does not end"),
        ] {
            let error = parse_examples(page).unwrap_err().to_string();
            assert!(error.contains(fault), "{error}");
        }
    }

    #[test]
    fn an_ellipsis_is_any_text_of_a_line() {
        for (expected, printed, so) in [
            ("a\n", "a", true),
            ("a … c", "a b b c", true),
            ("a …", "a ", false),
            ("…", "", false),
            ("a", "a\nb", false),
            ("a…c", "abd", false),
            ("a…c…e", "abcde", true),
        ] {
            assert_eq!(
                is_as_expected(expected, printed),
                so,
                "{expected:?} {printed:?}"
            );
        }
    }
}
