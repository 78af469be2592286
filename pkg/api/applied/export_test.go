package applied

// LimitMarks sets the limit of the waits that begin from now on.
func (w *Waiter) LimitMarks(n int) { w.maxMarks = n }

// Waits is how many waits are open.
func (w *Waiter) Waits() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waits)
}

// Marks is how much is noted for all waits.
func (w *Waiter) Marks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, s := range w.waits {
		s.mu.Lock()
		n += len(s.expected) + len(s.applied)
		s.mu.Unlock()
	}
	return n
}
