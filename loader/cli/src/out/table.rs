//! Text in columns: all cells in one text, so that a list of thousands of rows allocates little.

/// Rows of cells; the first is the heading.
pub(crate) struct Table {
    columns: usize,
    text: String,
    /// Where each cell ends.
    ends: Vec<usize>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Table {
        let mut table = Table { columns: heading.len().max(1), text: String::new(), ends: vec![] };
        heading.iter().for_each(|title| table.cell(|text| text.push_str(title)));
        table
    }

    /// The next cell: what `write` adds to the text.
    pub(crate) fn cell(&mut self, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.ends.push(self.text.len());
    }

    fn cells(&self) -> impl Iterator<Item = &str> {
        self.ends.iter().scan(0, |begin, end| Some(&self.text[std::mem::replace(begin, *end)..*end]))
    }

    /// The rows as their cells.
    pub(super) fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = &str>> {
        self.ends.chunks(self.columns).scan(0, move |begin, ends| {
            let mut from = std::mem::replace(begin, ends.last().copied().unwrap_or(*begin));
            Some(ends.iter().map(move |end| &self.text[std::mem::replace(&mut from, *end)..*end]))
        })
    }

    /// How wide the columns must be.
    pub(super) fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.columns];
        for (number, cell) in self.cells().enumerate() {
            let width = &mut widths[number % self.columns];
            *width = (*width).max(columns(cell));
        }
        widths
    }
}

/// Columns of a terminal that a cell takes.
fn columns(cell: &str) -> usize {
    if cell.is_ascii() { cell.len() } else { cell.chars().count() }
}

/// Adds a row to `line`.
pub(super) fn row_of<'a>(
    line: &mut String,
    cells: impl Iterator<Item = &'a str>,
    widths: &[usize],
    right: &[usize],
) {
    for (column, (cell, width)) in cells.zip(widths).enumerate() {
        let blanks = width.saturating_sub(columns(cell));
        if right.contains(&column) {
            pad(line, blanks);
            line.push_str(cell);
        } else {
            line.push_str(cell);
            if column + 1 < widths.len() {
                pad(line, blanks);
            }
        }
        if column + 1 < widths.len() {
            line.push_str("  ");
        }
    }
}

/// So many blanks at the end of a line.
fn pad(line: &mut String, mut count: usize) {
    const BLANKS: &str = "                                                                ";
    while count > 0 {
        let step = count.min(BLANKS.len());
        line.push_str(&BLANKS[..step]);
        count -= step;
    }
}

/// A number at the end of a text; a list has three a row, so the digits are laid out here.
pub(crate) fn push(text: &mut String, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut begin = digits.len();
    loop {
        begin -= 1;
        digits[begin] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend(str::from_utf8(&digits[begin..]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_digits() {
        for number in [0, 7, 10, 4_096, u64::from(u32::MAX), u64::MAX] {
            let mut text = String::from("x");
            push(&mut text, number);
            assert_eq!(text, format!("x{number}"));
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["NAME", "N"]);
        ["größe", "1", "a", "234"].iter().for_each(|cell| table.cell(|text| text.push_str(cell)));
        let widths = table.widths();
        assert_eq!(widths, [5, 3]);
        let lines: Vec<String> = table
            .rows()
            .map(|row| {
                let mut line = String::new();
                row_of(&mut line, row, &widths, &[1]);
                line
            })
            .collect();
        assert_eq!(lines, ["NAME     N", "größe    1", "a      234"]);
    }
}
