package faultdisk

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// maxRequest is the size of the largest read or write that the kernel sends at once.
const maxRequest = 128 << 10

// source is how mounts of a disk are listed.
const source = "faultdisk"

// Mount shows the disk in an empty folder until unmount is called. It needs /dev/fuse and the right to
// mount (root); the error says what is missing.
func (d *Disk) Mount(folder string) (unmount func() error, err error) {
	if err := unmountDead(); err != nil {
		return nil, err
	}
	// go-fuse would leave the connection open in every process that is started meanwhile.
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d,max_read=%d", fd, os.Geteuid(), os.Getegid(),
		maxRequest)
	if err := syscall.Mount(source, folder, "fuse", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		return nil, errors.Join(fmt.Errorf("mounting on %s: %w", folder, err), syscall.Close(fd))
	}
	detach := func() error { return syscall.Unmount(folder, syscall.MNT_DETACH) }
	server, err := fuse.NewServer(&files{RawFileSystem: fuse.NewDefaultRawFileSystem(), disk: d,
		folders: map[uint64][]fuse.DirEntry{}},
		fmt.Sprintf("/dev/fd/%d", fd), &fuse.MountOptions{
			Name: source, MaxWrite: maxRequest, DisableXAttrs: true, DisableReadDirPlus: true, DisableSplice: true,
			Logger: log.New(io.Discard, "", 0),
		})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("serving %s: %w", folder, err), detach())
	}
	go server.Serve()
	if err := errors.Join(server.WaitMount(), refusePolls(folder)); err != nil {
		return nil, errors.Join(err, detach())
	}
	// The server ends when the last mount is gone, or with this process: other processes that have a mount
	// namespace of their own since may still see this one.
	return detach, nil
}

// refusePolls has the kernel learn that the disk does not implement poll: Go's poller, which asks for it
// on behalf of this process, could not be answered by this process.
func refusePolls(folder string) error {
	fd, err := syscall.Open(filepath.Join(folder, ".go-fuse-epoll-hack"), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("polling %s: %w", folder, err)
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return syscall.Close(fd)
}

// unmountDead unmounts the disks of processes that were killed.
func unmountDead() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != source {
			continue
		}
		var status syscall.Statfs_t
		if errors.Is(syscall.Statfs(fields[1], &status), syscall.ENOTCONN) {
			_ = syscall.Unmount(fields[1], syscall.MNT_DETACH) // another process may do the same
		}
	}
	return nil
}
