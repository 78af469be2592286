package kit

import "sync"

// Tail keeps the last Limit bytes that are written to it; 0: all. It is safe for
// concurrent use.
type Tail struct {
	Limit int

	mu   sync.Mutex
	data []byte
}

func (l *Tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = append(l.data, p...)
	if extra := len(l.data) - l.Limit; l.Limit > 0 && extra > 0 {
		l.data = append(l.data[:0], l.data[extra:]...)
	}
	return len(p), nil
}

func (l *Tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.data)
}
