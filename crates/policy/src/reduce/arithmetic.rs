//! Small integer arithmetic, enough to see through `$((0x72))` and `${x:$((1+1)):2}`.

const DEEPEST: usize = 24;

/// The value of an expression, if it can be told.
pub(super) fn value(text: &str, variable: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    let mut reader = ArithmeticReader {
        chars: text
            .chars()
            .filter(|c| !c.is_whitespace())
            .take(256)
            .collect(),
        at: 0,
        depth: 0,
        variable,
    };
    let value = reader.sum()?;
    (reader.at == reader.chars.len()).then_some(value)
}

struct ArithmeticReader<'v> {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    variable: &'v dyn Fn(&str) -> Option<i64>,
}

impl ArithmeticReader<'_> {
    fn sum(&mut self) -> Option<i64> {
        let mut total = self.product()?;
        while let Some(op @ ('+' | '-' | '^')) = self.peek() {
            self.at += 1;
            let next = self.product()?;
            total = match op {
                '+' => total.checked_add(next)?,
                '-' => total.checked_sub(next)?,
                _ => total ^ next,
            };
        }
        Some(total)
    }

    fn product(&mut self) -> Option<i64> {
        let mut total = self.atom()?;
        while let Some(op @ ('*' | '/' | '%')) = self.peek() {
            self.at += 1;
            let next = self.atom()?;
            total = match op {
                '*' => total.checked_mul(next)?,
                '/' => total.checked_div(next)?,
                _ => total.checked_rem(next)?,
            };
        }
        Some(total)
    }

    fn atom(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let value = match self.peek()? {
            '-' => {
                self.at += 1;
                self.atom()?.checked_neg()
            }
            '(' => {
                self.at += 1;
                let inner = self.sum();
                if self.peek() != Some(')') {
                    return None;
                }
                self.at += 1;
                inner
            }
            c if c.is_ascii_alphanumeric() || c == '_' => {
                let from = self.at;
                while self
                    .peek()
                    .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '#')
                {
                    self.at += 1;
                }
                let word: String = self.chars[from..self.at].iter().collect();
                self.number(&word)
            }
            _ => None,
        };
        self.depth -= 1;
        value
    }

    fn number(&self, word: &str) -> Option<i64> {
        if let Some((base, digits)) = word.split_once('#') {
            let base = base.parse().ok().filter(|base| (2..=36).contains(base))?;
            return i64::from_str_radix(digits, base).ok();
        }
        if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            return i64::from_str_radix(hex, 16).ok();
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            if word.len() > 1 && word.starts_with('0') {
                return i64::from_str_radix(word, 8).ok();
            }
            return word.parse().ok();
        }
        (self.variable)(word)
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }
}
