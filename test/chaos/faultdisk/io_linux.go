package faultdisk

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// open counts a node as opened, past the page cache of the kernel.
func (n *node) open(out *fuse.OpenOut) {
	n.opened++
	out.OpenFlags = fuse.FOPEN_DIRECT_IO
}

func (f *files) Create(_ <-chan struct{}, input *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	defer f.unlock()
	n, status := f.create(&input.InHeader, name, syscall.S_IFREG|input.Mode&0o7777&^input.Umask, &out.EntryOut)
	if status.Ok() {
		n.open(&out.OpenOut)
	}
	return status
}

func (f *files) Open(_ <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	n, status := f.lock(input.NodeId)
	defer f.unlock()
	if !status.Ok() {
		return status
	}
	if input.Flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		if err := f.disk.mayWrite(0); err == syscall.EROFS {
			return fuse.EROFS
		}
	}
	n.open(out)
	return fuse.OK
}

func (f *files) Release(_ <-chan struct{}, input *fuse.ReleaseIn) {
	f.disk.mu.Lock()
	defer f.unlock()
	if n := f.disk.nodes[input.NodeId]; n != nil {
		n.opened--
		f.disk.release(n)
	}
}

func (f *files) Read(_ <-chan struct{}, input *fuse.ReadIn, buffer []byte) (fuse.ReadResult, fuse.Status) {
	n, status := f.lock(input.NodeId)
	defer f.unlock()
	if !status.Ok() {
		return nil, status
	}
	return fuse.ReadResultData(buffer[:n.content.read(int64(input.Offset), buffer)]), fuse.OK
}

func (f *files) Write(_ <-chan struct{}, input *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if input.Flags&syscall.O_DSYNC != 0 {
		f.disk.delaySync()
	}
	n, status := f.lock(input.NodeId)
	defer f.unlock()
	if !status.Ok() {
		return 0, status
	}
	offset := int64(input.Offset)
	if err := f.disk.mayWrite(int64(n.content.pagesAfter(offset, len(data)) - len(n.content.pages))); err != 0 {
		return 0, fuse.Status(err)
	}
	f.disk.edit(n, func(c *content) { c.write(offset, data) })
	if input.Flags&syscall.O_DSYNC == 0 { // a part of O_SYNC
		return uint32(len(data)), fuse.OK
	}
	if err := f.disk.faults.syncing; err != 0 {
		n.content.loseSync()
		return 0, fuse.Status(err)
	}
	f.disk.syncNode(n)
	return uint32(len(data)), fuse.OK
}

// Flags of fallocate.
const (
	keepSize  = 1
	punchHole = 2
)

func (f *files) Fallocate(_ <-chan struct{}, input *fuse.FallocateIn) fuse.Status {
	n, status := f.lock(input.NodeId)
	defer f.unlock()
	if !status.Ok() {
		return status
	}
	from, to := int64(input.Offset), int64(input.Offset+input.Length)
	switch input.Mode {
	case 0, keepSize: // no page is reserved: a disk that fills up says so at the write
		if err := f.disk.mayWrite(1); err != 0 {
			return fuse.Status(err)
		}
		if input.Mode == 0 && to > n.content.size {
			f.disk.edit(n, func(c *content) { c.resize(to) })
		}
	case keepSize | punchHole:
		if err := f.disk.mayWrite(0); err != 0 {
			return fuse.Status(err)
		}
		f.disk.edit(n, func(c *content) { c.zero(from, to) })
	default:
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	return fuse.OK
}

// Flush is called by close, which waits for it; it does not wait for Release.
func (f *files) Flush(_ <-chan struct{}, input *fuse.FlushIn) fuse.Status {
	n, status := f.lock(input.NodeId)
	defer f.unlock()
	if status.Ok() {
		f.disk.closed(n)
	}
	return fuse.OK
}

func (f *files) Fsync(_ <-chan struct{}, input *fuse.FsyncIn) fuse.Status { return f.sync(input) }

func (f *files) FsyncDir(_ <-chan struct{}, input *fuse.FsyncIn) fuse.Status { return f.sync(input) }

func (f *files) sync(input *fuse.FsyncIn) fuse.Status {
	f.disk.delaySync()
	n, status := f.lock(input.NodeId)
	defer f.unlock()
	switch {
	case !status.Ok():
		return status
	case f.disk.faults.syncing != 0:
		n.content.loseSync()
		return fuse.Status(f.disk.faults.syncing)
	}
	f.disk.syncNode(n)
	return fuse.OK
}
