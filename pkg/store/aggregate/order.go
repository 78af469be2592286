package aggregate

import (
	"encoding/binary"

	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// The first byte of an ordered value says its type, in the order of lists.
const (
	orderFalse  = 0x30
	orderTrue   = 0x31
	orderNumber = 0x40
	orderString = 0x50
)

// valueParts is how many parts of a key have a value. Unlike a key of a list's index, they have the whole value, so
// that the first and the last key are those of the least and the greatest value.
const valueParts = 3

const maxOrder = valueParts * driver.MaxPart

// orderOf returns bytes that compare like scalar JSON values in lists. It returns false for other values, and for those
// that a key has no space for.
func orderOf(value []byte) (order []byte, ok bool) {
	switch value[0] {
	case 'f':
		return []byte{orderFalse}, true
	case 't':
		return []byte{orderTrue}, true
	case '"':
		if len(value) > 6*maxOrder { // the longest escape of a byte
			return nil, false
		}
		text, isText := object.Text(value)
		order = append([]byte{orderString}, text...)
		return order, isText && len(order) <= maxOrder
	case 'n', '[', '{':
		return nil, false
	}
	n, ok := parseNumber(value)
	if !ok {
		return nil, false
	}
	order = n.appendOrder([]byte{orderNumber})
	return order, len(order) <= maxOrder
}

// appendOrder appends bytes that compare like numbers, exactly: the sign, the exponent, the digits. Of a negative
// number all are inverted, and an end follows, so that more digits come first.
func (n number) appendOrder(dst []byte) []byte {
	const negative, zero, positive = 0, 1, 2
	if n.digits == "" {
		return append(dst, zero)
	}
	exponent := uint64(n.exponent) ^ 1<<63 //nolint:gosec // so that bits compare like the number
	if !n.negative {
		dst = binary.BigEndian.AppendUint64(append(dst, positive), exponent)
		return append(dst, n.digits...)
	}
	dst = binary.BigEndian.AppendUint64(append(dst, negative), ^exponent)
	for i := range len(n.digits) {
		dst = append(dst, ^n.digits[i])
	}
	return append(dst, 0xff)
}

// parts splits an order into the parts of a key.
func parts(order []byte) [][]byte {
	all := make([][]byte, valueParts)
	for i := range all {
		n := min(len(order), driver.MaxPart)
		all[i], order = order[:n:n], order[n:]
	}
	return all
}
