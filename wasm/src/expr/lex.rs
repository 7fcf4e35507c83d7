//! Text of an expression to tokens, each with its position for messages.

use crate::error::{Error, Result};

/// What an expression is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Predicate,
    Value,
}

/// A token and where it begins, in characters from 0.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub at: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    /// A keyword or an unquoted name.
    Word(String),
    /// A name in backticks or double quotes: exact, never a keyword.
    Quoted(String),
    /// Digits with an optional fraction and exponent.
    Number(String),
    Text(String),
    Bytes(Vec<u8>),
    Symbol(&'static str),
    End,
}

/// Longest first, so that the first that fits is the right one.
const SYMBOLS: [&str; 26] = [
    "<=>", "!~*", "::", "==", "<>", "!=", "<=", ">=", "||", "~*", "!~", "<<", ">>", "=", "<", ">", "(", ")", "[", "]",
    ",", ".", "+", "-", "*", "/",
];
const LATE_SYMBOLS: [&str; 5] = ["%", "&", "|", "^", "~"];

impl TokenKind {
    /// The token as a message shows it.
    pub fn describe(&self) -> String {
        match self {
            TokenKind::Word(word) => format!("\"{word}\""),
            TokenKind::Quoted(name) => format!("`{name}`"),
            TokenKind::Number(number) => format!("\"{number}\""),
            TokenKind::Text(text) => format!("'{text}'"),
            TokenKind::Bytes(_) => "a binary literal".to_owned(),
            TokenKind::Symbol(symbol) => format!("\"{symbol}\""),
            TokenKind::End => "the end".to_owned(),
        }
    }
}

/// An error at a position, which messages count from 1.
pub(super) fn error_at(at: usize, message: impl std::fmt::Display) -> Error {
    Error::invalid_input(format!("Invalid expression at character {}: {message}", at + 1))
}

/// All tokens, the last one `End`. Double quotes hold names in predicates and text in values, as LanceDB has it.
pub(super) fn tokenize(text: &str, dialect: Dialect) -> Result<Vec<Token>> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        if c.is_whitespace() {
            at += 1;
            continue;
        }
        if let Some(end) = comment_end(&chars, at)? {
            at = end;
            continue;
        }
        // One at the end is a habit of SQL; what follows it is refused like any other text.
        if c == ';' && chars[at + 1..].iter().all(|c| c.is_whitespace()) {
            break;
        }
        let start = at;
        let kind = if (c == 'x' || c == 'X') && chars.get(at + 1) == Some(&'\'') {
            at += 1;
            let digits = quoted(&chars, &mut at, '\'')?;
            TokenKind::Bytes(hex(&digits).ok_or_else(|| error_at(start, "a binary literal needs pairs of hex digits"))?)
        } else if c.is_alphabetic() || c == '_' {
            while chars.get(at).is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$')) {
                at += 1;
            }
            TokenKind::Word(chars[start..at].iter().collect())
        } else if c.is_ascii_digit() || (c == '.' && chars.get(at + 1).is_some_and(char::is_ascii_digit)) {
            number(&chars, &mut at);
            TokenKind::Number(chars[start..at].iter().collect())
        } else if c == '\'' || (c == '"' && dialect == Dialect::Value) {
            TokenKind::Text(quoted(&chars, &mut at, c)?)
        } else if c == '`' || c == '"' {
            TokenKind::Quoted(quoted(&chars, &mut at, c)?)
        } else {
            let fits = |symbol: &&&str| symbol.chars().enumerate().all(|(i, s)| chars.get(at + i) == Some(&s));
            let Some(symbol) = SYMBOLS.iter().chain(&LATE_SYMBOLS).find(fits) else {
                return Err(error_at(at, format_args!("unexpected character {c:?}")));
            };
            at += symbol.len();
            TokenKind::Symbol(symbol)
        };
        tokens.push(Token { kind, at: start });
    }
    tokens.push(Token { kind: TokenKind::End, at: chars.len() });
    Ok(tokens)
}

/// Where the comment that begins at `at` ends, if one does.
fn comment_end(chars: &[char], at: usize) -> Result<Option<usize>> {
    match (chars.get(at), chars.get(at + 1)) {
        (Some('-'), Some('-')) => {
            let length = chars[at..].iter().take_while(|c| **c != '\n').count();
            Ok(Some(at + length))
        }
        (Some('/'), Some('*')) => {
            let body = chars.get(at + 2..).unwrap_or_default();
            let length = body.windows(2).position(|pair| pair == ['*', '/']);
            let length = length.ok_or_else(|| error_at(at, "this comment is never closed"))?;
            Ok(Some(at + 2 + length + 2))
        }
        _ => Ok(None),
    }
}

/// What stands between two quotes; a doubled quote is one quote of the content.
fn quoted(chars: &[char], at: &mut usize, quote: char) -> Result<String> {
    let start = *at;
    *at += 1;
    let mut content = String::new();
    while let Some(&c) = chars.get(*at) {
        *at += 1;
        if c != quote {
            content.push(c);
        } else if chars.get(*at) == Some(&quote) {
            content.push(quote);
            *at += 1;
        } else {
            return Ok(content);
        }
    }
    Err(error_at(start, format_args!("this {quote} is never closed")))
}

fn number(chars: &[char], at: &mut usize) {
    let digits = |at: &mut usize| {
        while chars.get(*at).is_some_and(char::is_ascii_digit) {
            *at += 1;
        }
    };
    digits(at);
    if chars.get(*at) == Some(&'.') {
        *at += 1;
        digits(at);
    }
    if matches!(chars.get(*at), Some('e' | 'E')) {
        let sign = usize::from(matches!(chars.get(*at + 1), Some('+' | '-')));
        if chars.get(*at + 1 + sign).is_some_and(char::is_ascii_digit) {
            *at += 1 + sign;
            digits(at);
        }
    }
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let nibbles: Vec<u8> = digits.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let pairs = nibbles.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}
