//! The rows of one fragment: which are live, and their columns.

use std::ops::Range;
use std::rc::Rc;

use arrow_array::{Array, ArrayRef, BooleanArray, new_null_array};
use roaring::RoaringBitmap;

use crate::batch::pick;
use crate::error::{Error, Result};
use crate::format::file::{FileReader, FileSource, null_array};
use crate::format::table::{DataFile, DeletionVector, Field, FieldId, Fragment};
use crate::store::Path;
use crate::table::database::Engine;
use crate::table::merged::Part;
use crate::table::projection::row_bytes;
use crate::table::snapshot::Snapshot;
use crate::table::spread;
use crate::table::system_columns::SystemColumn;
use crate::table::{lineage, paths};

/// A fragment of a snapshot, with its deletion vector.
pub(crate) struct FragmentRows {
    engine: Rc<Engine>,
    snapshot: Rc<Snapshot>,
    fragment: Fragment,
    part: Option<Part>,
    deleted: Option<Rc<DeletionVector>>,
}

/// From this many ranges on, rows are read as one range when at least a quarter of it is wanted.
const MANY_RANGES: usize = 16;

/// Bytes of the values that are read at once, about.
const READ_BYTES: u64 = 4 << 20;
/// Rows that are read at once at most.
pub(crate) const MAX_READ_ROWS: u64 = 65_536;

/// The deletion vector of a fragment; `None` when no row is deleted.
///
/// # Errors
/// `NotFound` naming version and file; `Corrupt` when it does not fit the fragment.
pub(crate) async fn deletion_vector(
    engine: &Engine,
    snapshot: &Snapshot,
    fragment: &Fragment,
) -> Result<Option<Rc<DeletionVector>>> {
    let Some(file) = &fragment.deletion else { return Ok(None) };
    if file.base_id.is_some() {
        return Err(Error::not_supported("deletion files under another base path"));
    }
    let path = snapshot.file(&paths::deletion_file(fragment.id, file));
    if let Some(vector) = engine.cache.deletions.get(&snapshot.dir, &path) {
        return Ok(Some(vector));
    }
    let bytes = match engine.store.get(&snapshot.dir, &path).await {
        Err(Error::NotFound { .. }) => return Err(snapshot.missing_file(&path)),
        other => other?,
    };
    let vector = DeletionVector::decode(file.kind, &bytes).map_err(|error| error.at(&path))?;
    if vector.rows.len() != file.deleted_rows {
        let reason = format!("{} deleted rows, the manifest says {}", vector.rows.len(), file.deleted_rows);
        return Err(Error::corrupt(reason).at(&path));
    }
    if vector.rows.max().is_some_and(|max| u64::from(max) >= fragment.physical_rows) {
        return Err(Error::corrupt("a deleted row lies behind the end of its fragment").at(&path));
    }
    Ok(Some(engine.cache.deletions.insert(&snapshot.dir, &path, vector)))
}

impl FragmentRows {
    pub(crate) async fn open(engine: &Rc<Engine>, snapshot: &Rc<Snapshot>, index: usize) -> Result<FragmentRows> {
        let fragment = snapshot.manifest.fragments.get(index).cloned();
        let fragment = fragment.ok_or_else(|| Error::internal("a fragment behind the last one"))?;
        if fragment.physical_rows > u64::from(u32::MAX) {
            return Err(
                Error::corrupt(format!("fragment {} has more than 2^32 rows", fragment.id.0)).at(&snapshot.path)
            );
        }
        let part = snapshot.parts.as_ref().and_then(|parts| parts.get(index)).cloned().flatten();
        let deleted = match &part {
            Some(part) => part.deleted.clone(),
            None => deletion_vector(engine, snapshot, &fragment).await?,
        };
        Ok(FragmentRows { engine: engine.clone(), snapshot: snapshot.clone(), fragment, part, deleted })
    }

    pub(crate) fn fragment(&self) -> &Fragment {
        &self.fragment
    }

    pub(crate) fn physical_rows(&self) -> u64 {
        self.fragment.physical_rows
    }

    /// Live rows of a physical range, as ranges.
    pub(crate) fn live(&self, rows: Range<u64>) -> Vec<Range<u64>> {
        match &self.deleted {
            None => Vec::from_iter((rows.start < rows.end).then_some(rows)),
            Some(vector) => complement(&vector.rows, rows),
        }
    }

    pub(crate) fn is_live(&self, offset: u64) -> bool {
        let is_deleted = |vector: &Rc<DeletionVector>| u32::try_from(offset).is_ok_and(|row| vector.rows.contains(row));
        offset < self.physical_rows() && !self.deleted.as_ref().is_some_and(is_deleted)
    }

    /// The physical offset of the live row that has `skipped` live rows before it; the end of the fragment when there are fewer.
    pub(crate) fn offset_of_live(&self, skipped: u64) -> u64 {
        let Some(vector) = &self.deleted else { return skipped.min(self.physical_rows()) };
        // The smallest offset whose live rows up to and including it are more than those to skip.
        let live_through = |offset: u64| {
            let deleted = u32::try_from(offset).map_or(vector.rows.len(), |offset| vector.rows.rank(offset));
            offset + 1 - deleted
        };
        let (mut low, mut high) = (0, self.physical_rows());
        while low < high {
            let middle = low + (high - low) / 2;
            if live_through(middle) > skipped { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// A system column of rows.
    ///
    /// # Errors
    /// `Corrupt` naming the manifest.
    pub(crate) fn system(&self, column: SystemColumn, rows: &[Range<u64>]) -> Result<ArrayRef> {
        let values = column.values(&self.fragment, rows, lineage::is_kept(&self.snapshot.manifest));
        values.map_err(|error| error.at(&self.snapshot.path))
    }

    /// Rows of some fields that are read at once. Long values are seen in the size of the stored columns, compressed ones in the types.
    ///
    /// # Errors
    /// As [`FragmentRows::read`].
    pub(crate) async fn rows_at_once(&self, fields: &[&Field]) -> Result<u64> {
        let mut ids = Vec::new();
        fields.iter().for_each(|field| collect_ids(field, &mut ids));
        let mut stored = 0u64;
        for file in &self.fragment.files {
            let columns: Vec<u32> = ids.iter().filter_map(|id| spread::column_of(file, *id)).collect();
            if columns.is_empty() {
                continue;
            }
            let reader = self.reader(file).await?;
            for column in columns {
                stored = stored.saturating_add(reader.column_bytes(column).await?);
            }
        }
        let by_type = fields.iter().map(|field| row_bytes(&field.data_type)).fold(0, u64::saturating_add);
        let row_bytes = by_type.max(stored / self.physical_rows().max(1)).max(1);
        Ok((READ_BYTES / row_bytes).clamp(1, MAX_READ_ROWS))
    }

    /// Reads columns of rows: one array per field, as long as all ranges together. `rows` are ascending and disjoint.
    ///
    /// # Errors
    /// `NotFound` naming version and file; what the file's reader says.
    pub(crate) async fn read(&self, fields: &[&Field], rows: &[Range<u64>]) -> Result<Vec<ArrayRef>> {
        let count = row_count(rows);
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return Ok(fields.iter().map(|field| new_null_array(&field.data_type, 0)).collect());
        };
        let covering = first.start..last.end;
        let is_dense = rows.len() >= MANY_RANGES && count.saturating_mul(4) >= covering.end - covering.start;
        if !is_dense {
            return self.read_ranges(fields, rows).await;
        }
        let start = covering.start;
        pick_rows(&self.read_ranges(fields, &[covering]).await?, rows, start)
    }

    fn path_of(&self, file: &DataFile) -> Path {
        let path = paths::data_file(&file.path);
        match self.part.as_ref().and_then(|part| part.root.as_ref()) {
            Some(root) => root.join(path.as_str()),
            None => self.snapshot.file(&path),
        }
    }

    async fn read_ranges(&self, fields: &[&Field], rows: &[Range<u64>]) -> Result<Vec<ArrayRef>> {
        if let Some(part) = self.part.as_ref().filter(|part| !part.batches.is_empty()) {
            return part.read(fields, rows);
        }
        let wanted: Vec<Vec<(usize, Field)>> =
            fields.iter().map(|field| spread::parts(field, &self.fragment.files)).collect();
        let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); fields.len()];
        for (number, file) in self.fragment.files.iter().enumerate() {
            let mine: Vec<(usize, &Field)> = wanted
                .iter()
                .enumerate()
                .filter_map(|(at, parts)| Some((at, &parts.iter().find(|(owner, _)| *owner == number)?.1)))
                .collect();
            if mine.is_empty() {
                continue;
            }
            let reader = self.reader(file).await?;
            let parts: Vec<&Field> = mine.iter().map(|(_, part)| *part).collect();
            let column_of = |id: FieldId| spread::column_of(file, id);
            let path = self.path_of(file);
            let arrays = reader.read(&parts, &column_of, rows).await.map_err(|error| self.reading(error, &path))?;
            if arrays.len() != mine.len() {
                return Err(Error::internal("the reader answered with another number of columns"));
            }
            for ((at, _), array) in mine.into_iter().zip(arrays) {
                columns[at].push(array);
            }
        }
        let count = usize::try_from(row_count(rows)).map_err(|_| Error::internal("more rows than memory"))?;
        columns
            .into_iter()
            .zip(fields)
            .map(|(parts, field)| match parts.as_slice() {
                // A column that was added without values has no file.
                [] if field.nullable => null_array(&field.data_type, count),
                [] => {
                    let reason = format!("fragment {} has no values of column {:?}", self.fragment.id.0, field.name);
                    Err(Error::corrupt(reason).at(&self.snapshot.path))
                }
                parts => spread::merge(&field.data_type, parts).map_err(|error| error.at(&self.snapshot.path)),
            })
            .collect()
    }

    async fn reader(&self, file: &DataFile) -> Result<Rc<FileReader>> {
        if file.base_id.is_some() {
            return Err(Error::not_supported("data files under another base path"));
        }
        let path = self.path_of(file);
        if let Some(reader) = self.engine.cache.readers.get(&self.snapshot.dir, &path) {
            return Ok(reader);
        }
        let source =
            FileSource { store: self.engine.store.clone(), dir: self.snapshot.dir.clone(), path: path.clone() };
        let reader = FileReader::open(source, file.size_bytes).await.map_err(|error| self.reading(error, &path))?;
        if reader.row_count() != self.fragment.physical_rows {
            let (found, said) = (reader.row_count(), self.fragment.physical_rows);
            return Err(Error::corrupt(format!("{found} rows, the manifest says {said}")).at(&path));
        }
        Ok(self.engine.cache.keep_reader(&self.snapshot.dir, &path, reader))
    }

    fn reading(&self, error: Error, path: &Path) -> Error {
        match error {
            Error::NotFound { .. } => self.snapshot.missing_file(path),
            other => other.at(path),
        }
    }
}

/// Rows in ranges.
pub(crate) fn row_count(rows: &[Range<u64>]) -> u64 {
    rows.iter().map(|range| range.end.saturating_sub(range.start)).fold(0, u64::saturating_add)
}

/// The first `count` rows of ranges, and the rest.
pub(crate) fn split_rows(rows: &[Range<u64>], count: u64) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let (mut head, mut tail, mut left) = (Vec::new(), Vec::new(), count);
    for range in rows {
        let middle = range.start.saturating_add(left).min(range.end);
        left -= middle - range.start;
        if range.start < middle {
            head.push(range.start..middle);
        }
        if middle < range.end {
            tail.push(middle..range.end);
        }
    }
    (head, tail)
}

/// The rows of `rows` that a mask of the same length keeps.
pub(crate) fn keep_rows(rows: &[Range<u64>], mask: &BooleanArray) -> Vec<Range<u64>> {
    let mut kept: Vec<Range<u64>> = Vec::new();
    let all = rows.iter().flat_map(|range| range.clone());
    for (at, row) in all.enumerate().take(mask.len()) {
        if mask.is_valid(at) && mask.value(at) {
            match kept.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                _ => kept.push(row..row + 1),
            }
        }
    }
    kept
}

fn collect_ids(field: &Field, ids: &mut Vec<FieldId>) {
    ids.push(field.id);
    field.children.iter().for_each(|child| collect_ids(child, ids));
}

fn complement(deleted: &RoaringBitmap, rows: Range<u64>) -> Vec<Range<u64>> {
    let (Ok(start), Ok(end)) = (u32::try_from(rows.start), u32::try_from(rows.end)) else { return Vec::new() };
    let (mut live, mut next) = (Vec::new(), rows.start);
    for row in deleted.range(start..end) {
        let row = u64::from(row);
        if next < row {
            live.push(next..row);
        }
        next = row + 1;
    }
    if next < rows.end {
        live.push(next..rows.end);
    }
    live
}
/// Some rows of arrays whose first row has the number `start`.
pub(crate) fn pick_rows(arrays: &[ArrayRef], rows: &[Range<u64>], start: u64) -> Result<Vec<ArrayRef>> {
    let size =
        |row: u64| usize::try_from(row.saturating_sub(start)).map_err(|_| Error::internal("more rows than memory"));
    let ranges: Vec<Range<usize>> =
        rows.iter().map(|range| Ok(size(range.start)?..size(range.end)?)).collect::<Result<_>>()?;
    let pick = |array| pick::ranges(array, &ranges).map_err(|error| Error::internal(format!("{error:?}")));
    arrays.iter().map(pick).collect()
}

#[cfg(test)]
mod tests {
    use arrow_array::Int32Array;

    use super::*;

    #[test]
    fn live_rows_are_what_the_deletion_vector_leaves() {
        let deleted = RoaringBitmap::from_iter([0, 3, 4, 9]);
        assert_eq!(complement(&deleted, 0..10), [1..3, 5..9]);
        assert_eq!(complement(&deleted, 3..5), []);
        assert_eq!(complement(&deleted, 5..12), [5..9, 10..12]);
    }

    #[test]
    fn ranges_split_at_a_row_count() {
        assert_eq!(split_rows(&[1..3, 5..9], 3), (vec![1..3, 5..6], vec![6..9]));
        assert_eq!(split_rows(&[1..3], 2), (vec![1..3], vec![]));
        assert_eq!(split_rows(&[1..3], 0), (vec![], vec![1..3]));
    }

    #[test]
    fn a_mask_keeps_rows_by_their_place_and_null_is_not_true() {
        let mask = BooleanArray::from(vec![Some(true), Some(true), None, Some(false), Some(true)]);
        assert_eq!(keep_rows(&[2..4, 7..10], &mask), [2..4, 9..10]);
    }

    #[test]
    fn rows_are_picked_by_their_numbers() {
        let array: ArrayRef = std::sync::Arc::new(Int32Array::from(vec![2, 3, 4, 5, 6]));
        let picked = pick_rows(&[array], &[2..3, 5..7], 2).unwrap();
        assert_eq!(picked[0].as_ref(), &Int32Array::from(vec![2, 5, 6]) as &dyn Array);
    }
}
