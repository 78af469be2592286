package rounds

// Waiting returns how many sources wait for the next round of a key.
func (r *Rounds) Waiting(k Key) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.next[k]; b != nil {
		return len(b.sources)
	}
	return 0
}

// Contend takes a target for contended, as after a conflict.
func (r *Rounds) Contend(k Key) { r.contended.add(k) }

// Contended returns how many targets count as contended.
func (r *Rounds) Contended() int {
	r.contended.mu.Lock()
	defer r.contended.mu.Unlock()
	return len(r.contended.until)
}

// Forget has no target count as contended.
func (r *Rounds) Forget() {
	r.contended.mu.Lock()
	defer r.contended.mu.Unlock()
	clear(r.contended.until)
	clear(r.contended.mappings)
}
