package thumbnail

import "bytes"

// jpegBytesPerPixel reads the frame of a JPEG: a progressive one keeps four bytes for each coefficient until its end.
// It reads as strictly as possible: where a decoder may continue in another way, it returns the most that there is.
func jpegBytesPerPixel(data []byte) int {
	const unknown = 24
	for at := 2; at+4 <= len(data); {
		if data[at] != 0xff {
			return unknown
		}
		marker := data[at+1]
		if marker == 0xff {
			at++ // a byte that fills
			continue
		}
		if marker < 0xc0 || marker >= 0xd0 && marker <= 0xd9 {
			return unknown // it has no length
		}
		length := int(data[at+2])<<8 | int(data[at+3])
		if marker > 0xc2 {
			at += 2 + length
			continue
		}
		frame := data[at+4 : min(len(data), at+2+max(length, 2))]
		if len(frame) < 6 || len(frame) < 6+3*int(frame[5]) {
			return unknown
		}
		samples, most := 0, 1
		for i := range int(frame[5]) {
			h, v := int(frame[6+3*i+1])>>4, int(frame[6+3*i+1])&15
			samples, most = samples+h*v, max(most, h*v)
		}
		per := (samples + most - 1) / most // rounded up
		if marker == 0xc2 {
			per *= 5
		}
		if frame[5] == 4 || frame[5] == 3 && isRGB(frame, data) {
			per += 4 // a picture of its own for CMYK, and for RGB
		}
		return per
	}
	return unknown
}

// isRGB reports whether a JPEG of three colors may have them as RGB: by their names in its frame, or by a segment of
// Adobe, which may be anywhere.
func isRGB(frame, data []byte) bool {
	if frame[6] == 'R' && frame[9] == 'G' && frame[12] == 'B' {
		return true
	}
	for {
		at := bytes.Index(data, []byte{0xff, 0xee})
		if at < 0 {
			return false
		}
		data = data[at+2:]
		const transform = 2 + 11 // after the marker
		if len(data) > transform && bytes.HasPrefix(data[2:], []byte("Adobe")) && data[transform] == 0 {
			return true
		}
	}
}
