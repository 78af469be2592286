// Package faultdisk is a file system in memory that processes use like a disk, and that fails like one: it
// loses what is not synced when its power is cut, becomes full or read-only, and syncs slowly or not at
// all.
//
// What survives a power cut is at most what ext4 keeps in its default mode (data=ordered). The content of
// a file is durable once the file is synced. Changes of names (a file that is created, renamed, removed)
// become durable in their order: with the sync of a file those up to the last one that concerns the
// file, with the sync of a folder those in the folder. Content that replaces other content, by a rename or by
// writing a file anew, is written before the old one is given up.
package faultdisk

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Disk is a file system. It is safe for concurrent use.
type Disk struct {
	mu      sync.Mutex
	nodes   map[uint64]*node // by number
	last    uint64           // number of a node
	used    int64            // pages
	journal []change         // of names, not yet durable
	changes uint64           // number of the last one
	faults  faults
	changed chan struct{} // closed when the faults change
}

// node is a file, a folder or a symbolic link.
type node struct {
	number   uint64
	mode     uint32 // type and permissions
	uid, gid uint32
	links    int // names; a folder has one
	opened   int
	lookups  uint64 // references of the kernel
	modified time.Time
	names    map[string]*node // of a folder
	target   string           // of a symbolic link
	content  content
	change   uint64 // the change that a sync makes durable, with those before it
}

func (n *node) folder() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

// change is a change of names.
type change struct {
	number uint64
	undo   func()
}

// New returns an empty disk.
func New() *Disk {
	d := &Disk{nodes: map[uint64]*node{}, changed: make(chan struct{})}
	d.faults.free = defaultFree
	n := d.newNode(syscall.S_IFDIR | 0o755)
	n.links = 1
	return d
}

func (d *Disk) newNode(mode uint32) *node {
	d.last++
	n := &node{number: d.last, mode: mode, modified: time.Now(), content: newContent()}
	if n.folder() {
		n.names = map[string]*node{}
	}
	d.nodes[n.number] = n
	return n
}

// record adds a change of names to the journal. The nodes' next sync makes it durable.
func (d *Disk) record(undo func(), of ...*node) {
	d.changes++
	d.journal = append(d.journal, change{d.changes, undo})
	for _, n := range of {
		n.change, n.modified = d.changes, time.Now()
	}
}

// commit makes changes of names durable.
func (d *Disk) commit(upTo uint64) {
	n := slices.IndexFunc(d.journal, func(c change) bool { return c.number > upTo })
	if n < 0 {
		n = len(d.journal)
	}
	d.journal = slices.Delete(d.journal, 0, n)
}

// setName gives a node a name or, if it is nil, removes what has the name.
func (d *Disk) setName(folder *node, name string, n *node) {
	if was := folder.names[name]; was != nil {
		was.links--
		d.release(was)
	}
	if n == nil {
		delete(folder.names, name)
		return
	}
	if n.links == 0 && n.opened == 0 { // nothing counted it
		d.used += int64(len(n.content.pages))
	}
	n.links++
	folder.names[name] = n
	d.nodes[n.number] = n
}

// release frees what nothing can reach any more, except through the journal.
func (d *Disk) release(n *node) {
	if n.links > 0 || n.opened > 0 {
		return
	}
	d.used -= int64(len(n.content.pages))
	if n.lookups == 0 {
		delete(d.nodes, n.number)
	}
}

// link gives a node a name, in place of what has it.
func (d *Disk) link(folder *node, name string, n *node) {
	was := folder.names[name]
	d.setName(folder, name, n)
	d.record(func() { d.setName(folder, name, was) }, folder, n)
}

// unlink removes a name.
func (d *Disk) unlink(folder *node, name string) {
	was := folder.names[name]
	d.setName(folder, name, nil)
	d.record(func() { d.setName(folder, name, was) }, folder, was)
}

// rename moves a name, in place of what has the new one.
func (d *Disk) rename(from *node, name string, to *node, newName string) {
	moved, replaced := from.names[name], to.names[newName]
	if moved == replaced {
		return
	}
	if replaced != nil {
		d.writeBack(moved)
	}
	d.setName(to, newName, moved)
	d.setName(from, name, nil)
	d.record(func() {
		d.setName(from, name, moved)
		d.setName(to, newName, replaced)
	}, from, to, moved)
}

// edit changes the content of a node and counts its pages.
func (d *Disk) edit(n *node, change func(*content)) {
	size, pages := n.content.size, len(n.content.pages)
	change(&n.content)
	d.used += int64(len(n.content.pages) - pages)
	n.modified = time.Now()
	if n.content.size != size {
		n.change = d.changes // the size is in the journal too
	}
}

// closed is called when a file is closed.
func (d *Disk) closed(n *node) {
	if n.content.renewed {
		d.writeBack(n)
	}
}

// writeBack writes content as the kernel does when nobody waits for it.
func (d *Disk) writeBack(n *node) {
	if d.faults.syncing != 0 {
		n.content.loseSync()
	} else {
		n.content.sync()
	}
}

// syncNode makes a node durable.
func (d *Disk) syncNode(n *node) {
	n.content.sync()
	d.commit(n.change)
}

// Cut takes back what is not durable. Without r that is everything; with r a random part of it was
// written before the power failed. The processes that use the disk must have ended, see Fail.
func (d *Disk) Cut(r *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := 0
	if r != nil {
		kept = r.IntN(len(d.journal) + 1)
	}
	for _, c := range slices.Backward(d.journal[kept:]) {
		c.undo()
	}
	d.journal = nil
	d.used = 0
	for _, number := range slices.Sorted(maps.Keys(d.nodes)) {
		n := d.nodes[number]
		n.content.cut(r)
		if n.links > 0 || n.opened > 0 {
			d.used += int64(len(n.content.pages))
		}
	}
}

// Unsynced returns how many pages and changes of names a power cut would take back.
func (d *Disk) Unsynced() (pages, names int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.nodes {
		pages += len(n.content.undo)
	}
	return pages, len(d.journal)
}
