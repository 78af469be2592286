package driver

// Backends that compare bytes keep a key as the escaped parts, each with its
// end. Written like this, keys compare as their lists of parts do, and none is
// a prefix of another. It is part of what these backends have on disk.

// AppendPart writes a part of a key without its end.
func AppendPart(dst, part []byte) []byte {
	for _, c := range part {
		dst = append(dst, c)
		if c == 0x00 {
			dst = append(dst, 0xff)
		}
	}
	return dst
}

// AppendPartEnd ends a part.
func AppendPartEnd(dst []byte) []byte { return append(dst, 0x00, 0x01) }
