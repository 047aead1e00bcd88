// data/csv_number: cells of a table as numbers.
#ifndef CX_DATA_CSV_NUMBER_H
#define CX_DATA_CSV_NUMBER_H

#include "calx/dtype.h"
#include "data/csv.h"

// What a missing cell becomes. One is missing where it is empty but for spaces,
// or one of NA, N/A, NaN, nan, null, NULL and None.
typedef struct cx_data_csv_missing {
  bool allowed;
  double value;
} cx_data_csv_missing;

// Writes the cell as one element of the type. Spaces around it do not count.
// @errors DATA_LOSS missing, and that is not allowed; no number, or none that
//         the type has
calx_status *cx_data_csv_number(const cx_data_csv *csv, size_t row,
                                size_t column, calx_dtype dtype,
                                const cx_data_csv_missing *missing,
                                void *out) CALX_MUST_USE;

#endif
