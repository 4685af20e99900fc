//! Quotes users' text for scripts, so that it keeps its meaning, or refuses it.
//!
//! Layer: submit.

use super::SubmitError;

/// Largest size of a value in bytes: a path has at most 4096, and schedulers limit whole scripts.
const MAX_BYTES: usize = 4096;

/// Refuses text that no script can carry safely: control characters (line breaks end a directive), and overlong text.
///
/// # Errors
/// The value has a control character, or is too long.
pub fn check(option: &'static str, value: &str) -> Result<(), SubmitError> {
    if value.chars().any(char::is_control) {
        return Err(SubmitError::bad(
            option,
            value,
            "line breaks and other control characters cannot be handed to a scheduler; write it without them",
        ));
    }
    if value.len() > MAX_BYTES {
        return Err(SubmitError::bad(option, value, format!("this is longer than {MAX_BYTES} bytes; write less")));
    }
    Ok(())
}

/// A POSIX shell word that means exactly `value`.
pub fn shell(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        value.into()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

/// A POSIX shell word that means `value` with `mark` replaced by the shell variable `name`.
pub fn shell_with(value: &str, mark: char, name: &str) -> String {
    if !value.contains(mark) {
        return shell(value);
    }
    let mut word = String::from("\"");
    for c in value.chars() {
        match c {
            c if c == mark => word.push_str(&format!("${{{name}}}")),
            '"' | '$' | '`' | '\\' => word.extend(['\\', c]),
            c => word.push(c),
        }
    }
    word + "\""
}

/// A YAML scalar that is the string `value`. Every JSON string is a YAML string, including its line breaks.
pub fn yaml(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for hostile in [
            "plain",
            "",
            "two words",
            "it's",
            "\"$(touch x)\"",
            "a;b|c&d",
            "`id`",
            "\\",
            "*?[a]",
            "~",
            "#",
            "-rf",
            "$HOME",
            "é",
            "'\\''",
        ] {
            let output =
                Command::new("sh").arg("-c").arg(format!("printf %s {}", shell(hostile))).output().expect("sh starts");
            assert_eq!(String::from_utf8_lossy(&output.stdout), hostile);
            let word = shell_with(&format!("{hostile}\u{1}/4"), '\u{1}', "i");
            let output =
                Command::new("sh").arg("-c").arg(format!("i=7; printf %s {word}")).output().expect("sh starts");
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{hostile}7/4"));
        }
    }

    #[test]
    fn lines_cannot_be_broken() {
        for bad in ["a\nb", "a\r", "\0", "\u{85}"] {
            let error = check("--set", bad).unwrap_err().to_string();
            assert!(error.starts_with("--set `") && !error.contains('\n'), "{error}");
        }
        assert!(check("--set", "a 'quoted' \"value\" # %").is_ok());
        assert!(check("--set", &"x".repeat(5000)).is_err());
    }

    #[test]
    fn yaml_strings_are_strings() {
        assert_eq!(yaml("yes"), "\"yes\"");
        assert_eq!(yaml("a\n\"b\": {c}"), r#""a\n\"b\": {c}""#);
    }
}
