// cli/element: the element types of StableHLO as those of PJRT, and how files
// hold them.
#ifndef CX_CLI_ELEMENT_H
#define CX_CLI_ELEMENT_H

#include "hlo/types.h"

// A PJRT_Buffer_Type; 0: no buffer has this type.
int cx_cli_element_type(cx_hlo_elem e);
cx_hlo_elem cx_cli_element_of(int type);  // the way back

// Data of files as plugins take it, and theirs as files hold it: elements of
// less than a byte take one each, sign- or zero-extended, and i1 is 0 or 1.
// Plugins leave the upper bits open; files may.
void cx_cli_element_extend(cx_hlo_elem e, void *data, size_t size);

#endif
