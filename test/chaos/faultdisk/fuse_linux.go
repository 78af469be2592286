package faultdisk

import (
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// files answers the kernel's requests. The kernel caches nothing: what a power cut takes back is gone for
// whoever reads it next.
type files struct {
	fuse.RawFileSystem // refuses everything else
	disk               *Disk
	folders            map[uint64][]fuse.DirEntry // by handle, what a folder held when it was opened
}

// lock returns a node, or the error that the disk has for every operation. The caller unlocks.
func (f *files) lock(number uint64) (*node, fuse.Status) {
	f.disk.mu.Lock()
	n := f.disk.nodes[number]
	switch {
	case f.disk.faults.every != 0:
		return nil, fuse.Status(f.disk.faults.every)
	case n == nil:
		return nil, fuse.ENOENT
	}
	return n, fuse.OK
}

func (f *files) unlock() { f.disk.mu.Unlock() }

func (n *node) attributes(out *fuse.Attr) {
	*out = fuse.Attr{
		Ino: n.number, Mode: n.mode, Nlink: uint32(n.links), Size: uint64(n.content.size), Blksize: pageSize,
		Blocks: uint64(len(n.content.pages)) * pageSize / 512, Owner: fuse.Owner{Uid: n.uid, Gid: n.gid},
	}
	out.SetTimes(&n.modified, &n.modified, &n.modified)
}

// entry describes a node that the kernel then refers to.
func (n *node) entry(out *fuse.EntryOut) {
	n.lookups++
	out.NodeId, out.Generation = n.number, 1
	n.attributes(&out.Attr)
}

func (f *files) Lookup(_ <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	folder, status := f.lock(header.NodeId)
	defer f.unlock()
	if !status.Ok() {
		return status
	}
	n := folder.names[name]
	if n == nil {
		return fuse.ENOENT
	}
	n.entry(out)
	return fuse.OK
}

func (f *files) Forget(number, lookups uint64) {
	f.disk.mu.Lock()
	defer f.unlock()
	if n := f.disk.nodes[number]; n != nil {
		n.lookups -= min(lookups, n.lookups)
		if n.lookups == 0 && n.links == 0 && n.opened == 0 {
			delete(f.disk.nodes, number)
		}
	}
}

func (f *files) GetAttr(_ <-chan struct{}, input *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	n, status := f.lock(input.NodeId)
	defer f.unlock()
	if status.Ok() {
		n.attributes(&out.Attr)
	}
	return status
}

func (f *files) SetAttr(_ <-chan struct{}, input *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	n, status := f.lock(input.NodeId)
	defer f.unlock()
	if !status.Ok() {
		return status
	}
	if err := f.disk.mayWrite(0); err != 0 {
		return fuse.Status(err)
	}
	if mode, ok := input.GetMode(); ok {
		n.mode = n.mode&syscall.S_IFMT | mode&^syscall.S_IFMT
	}
	if uid, ok := input.GetUID(); ok {
		n.uid = uid
	}
	if gid, ok := input.GetGID(); ok {
		n.gid = gid
	}
	if size, ok := input.GetSize(); ok {
		f.disk.edit(n, func(c *content) { c.resize(int64(size)) })
	}
	if modified, ok := input.GetMTime(); ok {
		n.modified = modified
	}
	n.attributes(&out.Attr)
	return fuse.OK
}

// create adds a node under a new name.
func (f *files) create(header *fuse.InHeader, name string, mode uint32, out *fuse.EntryOut) (*node, fuse.Status) {
	folder, status := f.lock(header.NodeId)
	if !status.Ok() {
		return nil, status
	}
	if folder.names[name] != nil {
		return nil, fuse.Status(syscall.EEXIST)
	}
	if err := f.disk.mayWrite(1); err != 0 {
		return nil, fuse.Status(err)
	}
	n := f.disk.newNode(mode)
	n.uid, n.gid = header.Uid, header.Gid
	f.disk.link(folder, name, n)
	n.entry(out)
	return n, fuse.OK
}

func (f *files) Mkdir(_ <-chan struct{}, input *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	defer f.unlock()
	_, status := f.create(&input.InHeader, name, syscall.S_IFDIR|input.Mode&0o7777&^input.Umask, out)
	return status
}

func (f *files) Mknod(_ <-chan struct{}, input *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	defer f.unlock()
	if input.Mode&syscall.S_IFMT != syscall.S_IFREG {
		f.disk.mu.Lock() // for unlock
		return fuse.Status(syscall.EPERM)
	}
	_, status := f.create(&input.InHeader, name, input.Mode&^input.Umask, out)
	return status
}

func (f *files) Symlink(_ <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	defer f.unlock()
	n, status := f.create(header, name, syscall.S_IFLNK|0o777, out)
	if status.Ok() {
		n.target = target
	}
	return status
}

func (f *files) Readlink(_ <-chan struct{}, header *fuse.InHeader) ([]byte, fuse.Status) {
	n, status := f.lock(header.NodeId)
	defer f.unlock()
	if !status.Ok() {
		return nil, status
	}
	return []byte(n.target), fuse.OK
}

func (f *files) Link(_ <-chan struct{}, input *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	folder, status := f.lock(input.NodeId)
	defer f.unlock()
	n := f.disk.nodes[input.Oldnodeid]
	switch {
	case !status.Ok():
		return status
	case n == nil:
		return fuse.ENOENT
	case folder.names[name] != nil:
		return fuse.Status(syscall.EEXIST)
	}
	if err := f.disk.mayWrite(1); err != 0 {
		return fuse.Status(err)
	}
	f.disk.link(folder, name, n)
	n.entry(out)
	return fuse.OK
}

func (f *files) Unlink(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return f.remove(header, name, false)
}

func (f *files) Rmdir(_ <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return f.remove(header, name, true)
}

func (f *files) remove(header *fuse.InHeader, name string, folders bool) fuse.Status {
	folder, status := f.lock(header.NodeId)
	defer f.unlock()
	if !status.Ok() {
		return status
	}
	n := folder.names[name]
	switch {
	case n == nil:
		return fuse.ENOENT
	case n.folder() && !folders:
		return fuse.Status(syscall.EISDIR)
	case !n.folder() && folders:
		return fuse.ENOTDIR
	case len(n.names) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	}
	if err := f.disk.mayWrite(0); err != 0 {
		return fuse.Status(err)
	}
	f.disk.unlink(folder, name)
	return fuse.OK
}

// noReplace is RENAME_NOREPLACE; the other flags are not supported.
const noReplace = 1

func (f *files) Rename(_ <-chan struct{}, input *fuse.RenameIn, oldName, newName string) fuse.Status {
	from, status := f.lock(input.NodeId)
	defer f.unlock()
	if !status.Ok() {
		return status
	}
	to := f.disk.nodes[input.Newdir]
	if to == nil || from.names[oldName] == nil {
		return fuse.ENOENT
	}
	moved, replaced := from.names[oldName], to.names[newName]
	switch {
	case input.Flags&^noReplace != 0:
		return fuse.EINVAL
	case replaced == nil:
	case input.Flags == noReplace:
		return fuse.Status(syscall.EEXIST)
	case replaced.folder() && !moved.folder():
		return fuse.Status(syscall.EISDIR)
	case !replaced.folder() && moved.folder():
		return fuse.ENOTDIR
	case len(replaced.names) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	}
	if err := f.disk.mayWrite(0); err != 0 {
		return fuse.Status(err)
	}
	f.disk.rename(from, oldName, to, newName)
	return fuse.OK
}

func (f *files) OpenDir(_ <-chan struct{}, input *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	n, status := f.lock(input.NodeId)
	defer f.unlock()
	if !status.Ok() {
		return status
	}
	entries := []fuse.DirEntry{{Mode: syscall.S_IFDIR, Name: ".", Ino: n.number},
		{Mode: syscall.S_IFDIR, Name: "..", Ino: n.number}}
	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		entries = append(entries, fuse.DirEntry{Mode: n.names[name].mode, Name: name, Ino: n.names[name].number})
	}
	out.Fh = rand.Uint64()
	f.folders[out.Fh] = entries
	return fuse.OK
}

func (f *files) ReadDir(_ <-chan struct{}, input *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	_, status := f.lock(input.NodeId)
	defer f.unlock()
	if !status.Ok() {
		return status
	}
	entries := f.folders[input.Fh]
	for i := input.Offset; i < uint64(len(entries)); i++ {
		entry := entries[i]
		entry.Off = i + 1
		if !out.AddDirEntry(entry) {
			break
		}
	}
	return fuse.OK
}

func (f *files) ReleaseDir(input *fuse.ReleaseIn) {
	f.disk.mu.Lock()
	defer f.unlock()
	delete(f.folders, input.Fh)
}

func (f *files) StatFs(_ <-chan struct{}, header *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	_, status := f.lock(header.NodeId)
	defer f.unlock()
	free := uint64(max(f.disk.faults.free-f.disk.used, 0))
	*out = fuse.StatfsOut{
		Blocks: defaultFree, Bfree: free, Bavail: free, Files: 1 << 20, Ffree: 1 << 20, Bsize: pageSize,
		Frsize: pageSize, NameLen: 255,
	}
	return status
}
