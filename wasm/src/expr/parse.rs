//! Tokens to syntax: a Pratt parser of the filter dialect. Names are not looked up and types not checked here.

use super::Literal;
use super::calendar;
use super::lex::{Token, TokenKind, error_at, tokenize};
use crate::batch::compare::CompareOp;
use crate::error::{Error, Result};

/// How deep parentheses, `not` and lists may nest: a parser and an evaluator that recurse must not exhaust the stack.
const MAX_DEPTH: usize = 100;

/// A node of the syntax and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Syntax {
    pub node: Node,
    pub at: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// A column, or a member of a struct column.
    Name(Vec<NamePart>),
    Literal(Literal),
    Not(Box<Syntax>),
    /// Two operands or more: long chains must not become deep trees.
    And(Vec<Syntax>),
    Or(Vec<Syntax>),
    Compare {
        op: CompareOp,
        left: Box<Syntax>,
        right: Box<Syntax>,
    },
    IsNull {
        operand: Box<Syntax>,
        negated: bool,
    },
    IsBool {
        operand: Box<Syntax>,
        value: bool,
        negated: bool,
    },
    In {
        operand: Box<Syntax>,
        list: Vec<Syntax>,
        negated: bool,
    },
    Between {
        operand: Box<Syntax>,
        low: Box<Syntax>,
        high: Box<Syntax>,
        negated: bool,
    },
    Like {
        operand: Box<Syntax>,
        pattern: Box<Syntax>,
        ignore_case: bool,
        escape: char,
        negated: bool,
    },
    Call {
        name: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamePart {
    pub text: String,
    /// Quoted names are exact; others may differ in case.
    pub is_quoted: bool,
}

// Binding powers, weakest first.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARE: u8 = 4;
const POSTFIX: u8 = 9;

/// Parses a whole filter.
pub(super) fn parse(text: &str) -> Result<Syntax> {
    let tokens = tokenize(text)?;
    let mut parser = Parser { tokens: &tokens, next: 0, depth: 0 };
    let syntax = parser.expression(0)?;
    match parser.peek() {
        TokenKind::End => Ok(syntax),
        other => Err(error_at(
            parser.at(),
            format_args!("expected \"and\", \"or\" or the end of the filter, found {}", other.describe()),
        )),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    next: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &TokenKind {
        self.tokens.get(self.next).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |token| token.at)
    }

    fn peek_word(&self, offset: usize, word: &str) -> bool {
        matches!(self.tokens.get(self.next + offset), Some(Token { kind: TokenKind::Word(found), .. })
            if found.eq_ignore_ascii_case(word))
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.peek_word(0, word);
        self.next += usize::from(is_there);
        is_there
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let is_there = matches!(self.peek(), TokenKind::Symbol(found) if *found == symbol);
        self.next += usize::from(is_there);
        is_there
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.expected(&format!("\"{word}\""))) }
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.expected(&format!("\"{symbol}\""))) }
    }

    fn expected(&self, what: &str) -> Error {
        error_at(self.at(), format_args!("expected {what}, found {}", self.peek().describe()))
    }

    fn expression(&mut self, power: u8) -> Result<Syntax> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(error_at(self.at(), format_args!("the filter nests deeper than {MAX_DEPTH} levels")));
        }
        let mut left = self.prefix()?;
        while let Some(next) = self.infix(&left, power)? {
            left = next;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn prefix(&mut self) -> Result<Syntax> {
        let at = self.at();
        let node = match self.peek().clone() {
            TokenKind::Number(text) => {
                self.next += 1;
                Node::Literal(Literal::number(&text).ok_or_else(|| error_at(at, "this number is too large"))?)
            }
            TokenKind::Text(text) => {
                self.next += 1;
                Node::Literal(Literal::Text(text))
            }
            TokenKind::Bytes(bytes) => {
                self.next += 1;
                Node::Literal(Literal::Bytes(bytes))
            }
            TokenKind::Symbol("(") => {
                self.next += 1;
                let inner = self.expression(0)?;
                self.expect_symbol(")")?;
                return Ok(inner);
            }
            TokenKind::Symbol("-") => {
                self.next += 1;
                let operand = self.expression(POSTFIX)?;
                match operand.node {
                    Node::Literal(literal) => {
                        Node::Literal(literal.negated().ok_or_else(|| error_at(at, "\"-\" needs a number"))?)
                    }
                    _ => return Err(unsupported(at, "arithmetic")),
                }
            }
            TokenKind::Symbol("[") => return Err(unsupported(at, "list literals")),
            TokenKind::Word(word) => return self.word(&word),
            TokenKind::Quoted(_) => self.name()?,
            _ => return Err(self.expected("a column, a value, \"not\" or \"(\"")),
        };
        Ok(Syntax { node, at })
    }

    fn word(&mut self, word: &str) -> Result<Syntax> {
        let at = self.at();
        let follows_text = matches!(self.tokens.get(self.next + 1), Some(Token { kind: TokenKind::Text(_), .. }));
        let follows_call = matches!(self.tokens.get(self.next + 1), Some(Token { kind: TokenKind::Symbol("("), .. }));
        let lower = word.to_ascii_lowercase();
        let node = match lower.as_str() {
            "not" => {
                self.next += 1;
                Node::Not(Box::new(self.expression(NOT)?))
            }
            "true" | "false" => {
                self.next += 1;
                Node::Literal(Literal::Bool(lower == "true"))
            }
            "null" => {
                self.next += 1;
                Node::Literal(Literal::Null)
            }
            "date" | "timestamp" if follows_text => {
                self.next += 1;
                let TokenKind::Text(text) = self.peek().clone() else { return Err(self.expected("text")) };
                let literal = if lower == "date" {
                    calendar::parse_date(&text).map(Literal::Date)
                } else {
                    calendar::parse_timestamp(&text).map(Literal::Timestamp)
                };
                let literal = literal.ok_or_else(|| {
                    let form = if lower == "date" { "YYYY-MM-DD" } else { "YYYY-MM-DD hh:mm:ss[.fraction][Z|+hh:mm]" };
                    error_at(self.at(), format_args!("'{text}' is not a {lower}: expected {form}"))
                })?;
                self.next += 1;
                Node::Literal(literal)
            }
            "case" | "interval" | "exists" | "any" => return Err(unsupported(at, &lower.to_ascii_uppercase())),
            "cast" | "try_cast" if follows_call => return Err(unsupported(at, "casts")),
            _ if follows_call => {
                self.next += 1;
                self.skip_parentheses()?;
                Node::Call { name: lower }
            }
            _ => self.name()?,
        };
        Ok(Syntax { node, at })
    }

    /// What stands in a call's parentheses is not looked at: no function is evaluated by this version.
    fn skip_parentheses(&mut self) -> Result<()> {
        let mut open = 0_usize;
        loop {
            match self.peek() {
                TokenKind::Symbol("(") => open += 1,
                TokenKind::Symbol(")") => open -= 1,
                TokenKind::End => return Err(self.expected("\")\"")),
                _ => {}
            }
            self.next += 1;
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// `a`, `a.b`, `a['b']`.
    fn name(&mut self) -> Result<Node> {
        let mut parts = vec![self.name_part()?];
        loop {
            if self.take_symbol(".") {
                parts.push(self.name_part()?);
            } else if self.take_symbol("[") {
                match self.peek().clone() {
                    TokenKind::Text(text) => parts.push(NamePart { text, is_quoted: true }),
                    _ => return Err(unsupported(self.at(), "list elements")),
                }
                self.next += 1;
                self.expect_symbol("]")?;
            } else {
                return Ok(Node::Name(parts));
            }
        }
    }

    fn name_part(&mut self) -> Result<NamePart> {
        let part = match self.peek().clone() {
            TokenKind::Word(text) => NamePart { text, is_quoted: false },
            TokenKind::Quoted(text) => NamePart { text, is_quoted: true },
            _ => return Err(self.expected("a column name")),
        };
        self.next += 1;
        Ok(part)
    }

    /// What follows an operand, if it binds tighter than `power`.
    fn infix(&mut self, left: &Syntax, power: u8) -> Result<Option<Syntax>> {
        let at = left.at;
        let node = match self.peek().clone() {
            TokenKind::Word(word) => match word.to_ascii_lowercase().as_str() {
                "or" if power < OR => Node::Or(self.chain(left, "or", OR)?),
                "and" if power < AND => Node::And(self.chain(left, "and", AND)?),
                "is" if power < COMPARE => self.is(left)?,
                "in" | "between" | "like" | "ilike" if power < COMPARE => self.range(left, false)?,
                "not" if power < COMPARE => {
                    let is_range = ["in", "between", "like", "ilike"].iter().any(|word| self.peek_word(1, word));
                    if !is_range {
                        return Ok(None);
                    }
                    self.next += 1;
                    self.range(left, true)?
                }
                "similar" | "escape" if power < COMPARE => {
                    return Err(unsupported(self.at(), &word.to_ascii_uppercase()));
                }
                _ => return Ok(None),
            },
            TokenKind::Symbol(symbol) => {
                let op = match symbol {
                    "=" | "==" => CompareOp::Eq,
                    "<>" | "!=" => CompareOp::NotEq,
                    "<" => CompareOp::Lt,
                    "<=" => CompareOp::LtEq,
                    ">" => CompareOp::Gt,
                    ">=" => CompareOp::GtEq,
                    "+" | "-" | "*" | "/" | "%" => return Err(unsupported(self.at(), "arithmetic")),
                    "<=>" | "&" | "|" | "^" | "<<" | ">>" | "~" | "~*" | "!~" | "!~*" | "||" | "::" => {
                        return Err(unsupported(self.at(), &format!("operator {symbol}")));
                    }
                    _ => return Ok(None),
                };
                if power >= COMPARE {
                    return Ok(None);
                }
                self.next += 1;
                let right = Box::new(self.expression(COMPARE)?);
                Node::Compare { op, left: Box::new(left.clone()), right }
            }
            _ => return Ok(None),
        };
        Ok(Some(Syntax { node, at }))
    }

    fn chain(&mut self, left: &Syntax, word: &str, power: u8) -> Result<Vec<Syntax>> {
        let mut operands = vec![left.clone()];
        while self.take_word(word) {
            operands.push(self.expression(power)?);
        }
        Ok(operands)
    }

    fn is(&mut self, left: &Syntax) -> Result<Node> {
        self.next += 1;
        let negated = self.take_word("not");
        let operand = Box::new(left.clone());
        if self.take_word("null") {
            return Ok(Node::IsNull { operand, negated });
        }
        if self.peek_word(0, "true") || self.peek_word(0, "false") {
            let value = self.peek_word(0, "true");
            self.next += 1;
            return Ok(Node::IsBool { operand, value, negated });
        }
        for word in ["distinct", "unknown"] {
            if self.peek_word(0, word) {
                return Err(unsupported(self.at(), &format!("IS {}", word.to_ascii_uppercase())));
            }
        }
        Err(self.expected("\"null\", \"true\" or \"false\""))
    }

    fn range(&mut self, left: &Syntax, negated: bool) -> Result<Node> {
        let operand = Box::new(left.clone());
        if self.take_word("in") {
            self.expect_symbol("(")?;
            let mut list = vec![self.expression(0)?];
            while self.take_symbol(",") {
                list.push(self.expression(0)?);
            }
            self.expect_symbol(")")?;
            return Ok(Node::In { operand, list, negated });
        }
        if self.take_word("between") {
            let low = Box::new(self.expression(COMPARE)?);
            self.expect_word("and")?;
            let high = Box::new(self.expression(COMPARE)?);
            return Ok(Node::Between { operand, low, high, negated });
        }
        let ignore_case = self.take_word("ilike");
        if !ignore_case {
            self.expect_word("like")?;
        }
        let pattern = Box::new(self.expression(COMPARE)?);
        let mut escape = '\\';
        if self.take_word("escape") {
            let TokenKind::Text(text) = self.peek().clone() else { return Err(self.expected("an escape character")) };
            let mut chars = text.chars();
            escape = match (chars.next(), chars.next()) {
                (Some(c), None) => c,
                _ => return Err(self.expected("one escape character")),
            };
            self.next += 1;
        }
        Ok(Node::Like { operand, pattern, ignore_case, escape, negated })
    }
}

fn unsupported(at: usize, what: &str) -> Error {
    Error::not_supported(format!("{what} in a filter (character {})", at + 1))
}
