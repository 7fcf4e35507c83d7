//! JSON, as far as references need it: the fields of one object, what lies deeper as it is.

use crate::error::{Error, Result};

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Null,
    Text(String),
    /// As written.
    Number(&'a str),
    /// As written, braces included.
    Object(&'a str),
    /// A list, or a truth value.
    Other,
}

/// Objects and lists in one another at most: a reader that recurses must end before its stack does.
const MAX_DEPTH: u32 = 64;

/// The fields of an object, which is all that the bytes hold, in their order.
///
/// # Errors
/// `Corrupt` at the byte that is no JSON.
pub(super) fn object(bytes: &[u8]) -> Result<Vec<(String, Value<'_>)>> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Error::corrupt_at(error.valid_up_to() as u64, "JSON that is not UTF-8"))?;
    let mut reader = Reader { text, at: 0 };
    let mut fields = Vec::new();
    let read = reader.fields(0, &mut |name, value| fields.push((name, value))).filter(|()| reader.is_at_end());
    read.ok_or_else(|| Error::corrupt_at(reader.at as u64, "not the JSON of an object"))?;
    Ok(fields)
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// `None` from its methods is bad JSON near `at`.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn fields(&mut self, depth: u32, found: &mut dyn FnMut(String, Value<'a>)) -> Option<()> {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Some(());
        }
        loop {
            let name = self.string()?;
            self.expect(b':')?;
            let value = self.value(depth)?;
            found(name, value);
            if !self.take(b',') {
                return self.expect(b'}');
            }
        }
    }

    fn value(&mut self, depth: u32) -> Option<Value<'a>> {
        self.skip_space();
        let start = self.at;
        match self.peek()? {
            b'"' => self.string().map(Value::Text),
            b'{' => {
                let inner = depth.checked_add(1).filter(|inner| *inner <= MAX_DEPTH)?;
                self.fields(inner, &mut |_, _| {})?;
                self.text.get(start..self.at).map(Value::Object)
            }
            b'[' => {
                let inner = depth.checked_add(1).filter(|inner| *inner <= MAX_DEPTH)?;
                self.expect(b'[')?;
                if self.take(b']') {
                    return Some(Value::Other);
                }
                loop {
                    self.value(inner)?;
                    if !self.take(b',') {
                        return self.expect(b']').map(|()| Value::Other);
                    }
                }
            }
            b'n' => self.word("null").map(|()| Value::Null),
            b't' => self.word("true").map(|()| Value::Other),
            b'f' => self.word("false").map(|()| Value::Other),
            _ => self.number().map(Value::Number),
        }
    }

    fn number(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.take_next(b"-");
        let first = self.peek()?;
        let digits = self.digits()?;
        if first == b'0' && digits > 1 {
            return None;
        }
        if self.take_next(b".") {
            self.digits()?;
        }
        if self.take_next(b"eE") {
            self.take_next(b"+-");
            self.digits()?;
        }
        self.text.get(start..self.at)
    }

    fn digits(&mut self) -> Option<usize> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(self.at - start)
    }

    fn string(&mut self) -> Option<String> {
        self.expect(b'"')?;
        let mut value = String::new();
        loop {
            let c = self.text.get(self.at..)?.chars().next()?;
            self.at += c.len_utf8();
            match c {
                '"' => return Some(value),
                '\\' => value.push(self.escaped()?),
                c if c < ' ' => return None,
                c => value.push(c),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        let byte = self.peek()?;
        self.at += 1;
        Some(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.hex()?;
                if !(0xd800..0xdc00).contains(&high) {
                    return char::from_u32(high);
                }
                self.word("\\u")?;
                let low = self.hex()?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                return char::from_u32(0x10000 + ((high - 0xd800) << 10) + low);
            }
            _ => return None,
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at.checked_add(4)?)?;
        self.at += 4;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.text.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    /// Takes a byte after white space.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        self.take_next(&[byte])
    }

    fn take_next(&mut self, bytes: &[u8]) -> bool {
        let is_there = self.peek().is_some_and(|byte| bytes.contains(&byte));
        self.at += usize::from(is_there);
        is_there
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.at == self.text.len()
    }

    fn skip_space(&mut self) {
        while self.take_next(b" \t\r\n") {}
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_with_their_names() {
        let fields =
            object(br#"{"a":null,"b" : "x\n\u0041" ,"c":-1.5e+3,"d":{ "e":[] },"f":[1,true,{}],"":false}"#).unwrap();
        let expected = [
            ("a", Value::Null),
            ("b", Value::Text("x\nA".into())),
            ("c", Value::Number("-1.5e+3")),
            ("d", Value::Object("{ \"e\":[] }")),
            ("f", Value::Other),
            ("", Value::Other),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn a_text_survives_its_quotes() {
        let text = "a\"b\\c\n\u{1}\u{e9}\u{1f600}/";
        let json = format!("{{{}:{}}}", quoted(text), quoted(text));
        assert_eq!(object(json.as_bytes()).unwrap(), [(text.to_owned(), Value::Text(text.to_owned()))]);
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(object(nested(64).as_bytes()).is_ok());
        assert!(object(nested(65).as_bytes()).is_err());
    }
}
