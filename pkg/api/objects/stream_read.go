package objects

import (
	"bufio"
	"errors"
	"io"
	"time"

	"belfry/pkg/errs"
)

// timedBody is the body of a stream. Each read has the timeout idleTimeout. A stream may take any time while the client
// keeps sending, and time in which belfry does not read does not count.
type timedBody struct {
	*stream
	body io.Reader
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(idleTimeout))
	if b.ending.Err() != nil {
		b.interrupt()
	}
	return b.body.Read(p)
}

func newLineReader(body *timedBody) *bufio.Reader { return bufio.NewReaderSize(body, 64<<10) }

var errLongLine = errs.New(errs.TooLarge, "a line has at most %d bytes", maxLine)

// readLine reads a line, which is valid until the next one is read. It reads a line that is too long to its end, and
// drops it. If the body breaks off, the bytes after the last newline are not a line.
func (s *stream) readLine() ([]byte, error) {
	var long []byte
	tooLong := false
	for {
		part, err := s.lines.ReadSlice('\n')
		switch {
		case err == nil || errors.Is(err, io.EOF) && len(long)+len(part) > 0:
			if tooLong || len(long)+len(part) > maxLine {
				return nil, errLongLine
			}
			if long == nil {
				return part, nil
			}
			return append(long, part...), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if tooLong && errors.Is(err, io.EOF) {
				return nil, errLongLine
			}
			return nil, err
		}
		if tooLong = tooLong || len(long)+len(part) > maxLine; tooLong {
			long = nil
			continue
		}
		long = append(long, part...)
	}
}
