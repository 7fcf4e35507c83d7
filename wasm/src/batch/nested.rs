//! Types made of types: one walk for whoever changes some of them.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields};

/// The type with `change` made to it and, before, to every type of a member or an item in it. What a dictionary is of stays.
pub fn map_type(data_type: &DataType, change: &dyn Fn(DataType) -> DataType) -> DataType {
    let field = |field: &FieldRef| map_field(field, change);
    change(match data_type {
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Map(entries, is_sorted) => DataType::Map(field(entries), *is_sorted),
        DataType::Struct(members) => DataType::Struct(map_fields(members, change)),
        other => other.clone(),
    })
}

pub fn map_fields(fields: &Fields, change: &dyn Fn(DataType) -> DataType) -> Fields {
    fields.iter().map(|field| map_field(field, change)).collect()
}

fn map_field(field: &FieldRef, change: &dyn Fn(DataType) -> DataType) -> FieldRef {
    let changed = map_type(field.data_type(), change);
    if changed == *field.data_type() {
        return field.clone();
    }
    Arc::new(field.as_ref().clone().with_data_type(changed))
}
