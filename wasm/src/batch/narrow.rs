//! Large lists as lists: the JavaScript library of Arrow has no type for them.
//!
//! The items of one batch always fit 32-bit offsets here, where the memory does.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema};

use crate::batch::nested::{map_fields, map_type};
use crate::error::{Error, Result};

/// The schema with a list in the place of each large one, at every depth.
pub fn narrow_schema(schema: &Schema) -> Schema {
    Schema::new_with_metadata(map_fields(schema.fields(), &narrow), schema.metadata().clone())
}

/// The batch of [`narrow_schema`].
pub fn narrow_batch(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = narrow_schema(&batch.schema());
    if schema == *batch.schema() {
        return Ok(batch.clone());
    }
    let columns: Result<Vec<ArrayRef>> =
        batch.columns().iter().map(|column| narrow_data(column.to_data()).map(make_array)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(schema), columns?, &options)
        .map_err(|error| Error::internal(error.to_string()))
}

/// The inner types are narrow already.
fn narrow(data_type: DataType) -> DataType {
    match data_type {
        DataType::LargeList(item) => DataType::List(item),
        other => other,
    }
}

fn narrow_data(data: ArrayData) -> Result<ArrayData> {
    let narrowed = map_type(data.data_type(), &narrow);
    if narrowed == *data.data_type() {
        return Ok(data);
    }
    let children = data.child_data().iter().cloned().map(narrow_data).collect::<Result<Vec<_>>>()?;
    let is_large = matches!(data.data_type(), DataType::LargeList(_));
    let (offset, length) = (data.offset(), data.len());
    let mut builder = data.clone().into_builder().data_type(narrowed).child_data(children);
    if is_large && let [offsets] = data.buffers() {
        // The offset of the array stays: it counts for its nulls, too.
        let count = if offsets.is_empty() { 0 } else { offset + length + 1 };
        let wide = ScalarBuffer::<i64>::new(offsets.clone(), 0, count);
        let narrow: Vec<i32> = wide
            .iter()
            .map(|offset| i32::try_from(*offset))
            .collect::<std::result::Result<_, _>>()
            .map_err(|_| Error::not_supported("a batch of lists with 2^31 items or more"))?;
        builder = builder.buffers(vec![Buffer::from_vec(narrow)]);
    }
    builder.build().map_err(|error| Error::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int32Builder, LargeListBuilder};
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{Array, LargeListArray, StructArray};
    use arrow_schema::Field;

    use super::*;

    fn lists() -> LargeListArray {
        let mut builder = LargeListBuilder::new(Int32Builder::new());
        for list in [Some(vec![Some(9)]), Some(vec![Some(1), None]), None, Some(vec![]), Some(vec![Some(3)])] {
            builder.append_option(list);
        }
        builder.finish()
    }

    #[test]
    fn large_lists_become_lists_of_the_same_items_at_every_depth() {
        let list = Arc::new(Field::new("l", lists().data_type().clone(), true));
        let members = StructArray::from(vec![(list, Arc::new(lists()) as ArrayRef)]);
        let schema = Schema::new(vec![
            Field::new("a", lists().data_type().clone(), true).with_metadata([("k".to_owned(), "v".to_owned())]),
            Field::new("s", members.data_type().clone(), false),
        ]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(lists()), Arc::new(members)]).unwrap();
        // A slice: its offsets begin after 0, and its nulls count from 1.
        let narrow = narrow_batch(&batch.slice(1, 4)).unwrap();
        for list in [narrow.column(0), narrow.column(1).as_struct().column(0)] {
            let list = list.as_list::<i32>();
            let items: Vec<Option<Vec<Option<i32>>>> = list
                .iter()
                .map(|items| items.map(|items| items.as_primitive::<Int32Type>().iter().collect()))
                .collect();
            assert_eq!(items, [Some(vec![Some(1), None]), None, Some(vec![]), Some(vec![Some(3)])]);
        }
        assert_eq!(narrow.schema().field(0).metadata().get("k").map(|value| value.as_str()), Some("v"));
    }
}
