//! A parser and evaluator for arithmetic with variables, e.g. `2 * (width + 1)`.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::iter::Peekable;
use std::str::CharIndices;

#[derive(Debug, Clone, PartialEq)]
pub enum Expr<'a> {
    Number(f64),
    Name(&'a str),
    Negate(Box<Expr<'a>>),
    Binary { op: char, left: Box<Expr<'a>>, right: Box<Expr<'a>> },
    Call(&'a str, Vec<Expr<'a>>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    Unexpected { found: Option<char>, at: usize },
    Unknown(String),
    Arguments { name: &'static str, got: usize },
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unexpected { found: Some(c), at } => write!(f, "didn't expect '{c}' at {at}"),
            Error::Unexpected { found: None, .. } => f.write_str("the input ends too early"),
            Error::Unknown(name) => write!(f, "nothing is called {:?}", name),
            Error::Arguments { name, got } => write!(f, "{name}() can't take {} arguments", got),
        }
    }
}

macro_rules! binary {
    ($op:expr, $left:expr, $right:expr $(,)?) => {
        Expr::Binary { op: $op, left: Box::new($left), right: Box::new($right) }
    };
}

pub struct Parser<'a> {
    source: &'a str,
    chars: Peekable<CharIndices<'a>>,
}

impl<'a> Parser<'a> {
    pub fn new(source: &'a str) -> Self {
        Self { source, chars: source.char_indices().peekable() }
    }

    pub fn parse(mut self) -> Result<Expr<'a>, Error> {
        let expr = self.sum()?;
        match self.peek() {
            None => Ok(expr),
            found => Err(Error::Unexpected { found, at: self.position() }),
        }
    }

    fn peek(&mut self) -> Option<char> {
        while self.chars.next_if(|&(_, c)| c.is_whitespace()).is_some() {}
        self.chars.peek().map(|&(_, c)| c)
    }

    fn position(&mut self) -> usize {
        self.chars.peek().map_or(self.source.len(), |&(at, _)| at)
    }

    fn sum(&mut self) -> Result<Expr<'a>, Error> {
        let mut left = self.product()?;
        while let Some(op @ ('+' | '-')) = self.peek() {
            self.chars.next();
            left = binary!(op, left, self.product()?);
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expr<'a>, Error> {
        let mut left = self.atom()?;
        while let Some(op @ ('*' | '/')) = self.peek() {
            self.chars.next();
            left = binary!(op, left, self.atom()?);
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Expr<'a>, Error> {
        match self.peek() {
            Some('-') => {
                self.chars.next();
                self.atom().map(Box::new).map(Expr::Negate)
            }
            Some('(') => Ok(self.list()?.swap_remove(0)),
            Some(c) if c.is_ascii_digit() => {
                let text = self.take(|c| c.is_ascii_digit() || c == '.');
                text.parse::<f64>().map(Expr::Number).map_err(|_| Error::Unknown(text.to_owned()))
            }
            Some(c) if c.is_alphabetic() => {
                let name = self.take(char::is_alphanumeric);
                let called = self.peek() == Some('(');
                Ok(if called { Expr::Call(name, self.list()?) } else { Expr::Name(name) })
            }
            found => Err(Error::Unexpected { found, at: self.position() }),
        }
    }

    fn list(&mut self) -> Result<Vec<Expr<'a>>, Error> {
        let mut items = vec![];
        loop {
            self.chars.next(); // the opening '(' or a comma
            items.push(self.sum()?);
            match self.peek() {
                Some(',') => continue,
                Some(')') => break,
                found => return Err(Error::Unexpected { found, at: self.position() }),
            }
        }
        self.chars.next();
        Ok(items)
    }

    fn take<F: Fn(char) -> bool>(&mut self, accept: F) -> &'a str {
        let start = self.position();
        while self.chars.next_if(|&(_, c)| accept(c)).is_some() {}
        let end = self.position();
        &self.source[start..end]
    }
}

pub fn evaluate(expr: &Expr<'_>, names: &HashMap<&str, f64>) -> Result<f64, Error> {
    Ok(match expr {
        Expr::Number(value) => *value,
        Expr::Name(name) => *names.get(name).ok_or_else(|| Error::Unknown(name.to_string()))?,
        Expr::Negate(inner) => -evaluate(inner, names)?,
        Expr::Binary { op, left, right } => {
            let (a, b) = (evaluate(left, names)?, evaluate(right, names)?);
            match op { '+' => a + b, '-' => a - b, '*' => a * b, _ => a / b }
        }
        Expr::Call(name, arguments) => {
            let values: Vec<f64> =
                arguments.iter().map(|each| evaluate(each, names)).collect::<Result<_, _>>()?;
            match (*name, values.as_slice()) {
                ("max", [first, rest @ ..]) => rest.iter().fold(*first, |a, &b| a.max(b)),
                ("sqrt", &[x]) => x.sqrt(),
                ("sqrt", all) => return Err(Error::Arguments { name: "sqrt", got: all.len() }),
                _ => return Err(Error::Unknown(format!("{name}()"))),
            }
        }
    })
}
