package driver

// Backends that compare bytes store a key as its escaped parts, each with a
// terminator. In this form keys sort like their lists of parts, and no key is a
// prefix of another. The encoding is part of the on-disk format of these
// backends.

// AppendPart appends a part of a key without its terminator.
func AppendPart(dst, part []byte) []byte {
	for _, c := range part {
		dst = append(dst, c)
		if c == 0x00 {
			dst = append(dst, 0xff)
		}
	}
	return dst
}

// AppendPartEnd appends the terminator of a part.
func AppendPartEnd(dst []byte) []byte { return append(dst, 0x00, 0x01) }
