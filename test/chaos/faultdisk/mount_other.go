//go:build !linux

package faultdisk

import "errors"

// Mount is possible on Linux only.
func (d *Disk) Mount(string) (unmount func() error, err error) {
	return nil, errors.New("a disk that fails can be mounted on Linux only")
}
