package backup

import (
	"archive/tar"
	"context"
	"encoding/json"
	"io"
	"time"

	"belfry/pkg/binary/filestorage"
)

// FolderOf returns the name of the folder that the archive of a backup has.
func FolderOf(id string) string { return "belfry-backup-" + id }

// WriteTar writes a backup as a tar archive, with all of its parts and no others. The archive has one folder, which is a
// destination: a restore reads it once it is extracted. The manifest is the last file, so an archive that is cut has no
// backup. Each part is compared with its hash. An error leaves an incomplete archive.
func WriteTar(ctx context.Context, d *Destination, m *Manifest, to io.Writer) error {
	a := &archive{tar.NewWriter(to), d, m, FolderOf(m.ID) + "/"}
	if err := a.out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: a.folder, Mode: 0o700,
		ModTime: m.Ended.UTC().Truncate(time.Second)}); err != nil {
		return err
	}
	if err := a.parts(ctx); err != nil {
		return err
	}
	owner, err := json.Marshal(marker{Installation: m.Installation})
	if err != nil {
		return err
	}
	if err := a.document(markerName, owner); err != nil {
		return err
	}
	name := manifestPrefix + m.ID + manifestSuffix
	manifest, err := d.storage.Document(ctx, name)
	if err != nil {
		return d.wrap(err)
	}
	if err := a.document(name, manifest); err != nil {
		return err
	}
	return a.out.Close()
}

type archive struct {
	out    *tar.Writer
	from   *Destination
	of     *Manifest
	folder string
}

// parts writes the parts that the manifest names, each once, and then the contents of binaries. Only contents that two
// services share are written twice, to the same effect.
func (a *archive) parts(ctx context.Context) error {
	written := map[Part]bool{}
	err := a.of.eachPart(func(what string, p Part) error {
		if written[p] {
			return nil
		}
		written[p] = true
		return a.part(ctx, what, p)
	})
	if err != nil {
		return err
	}
	var z codec
	defer z.close()
	for _, b := range a.of.Binaries {
		for _, list := range b.Lists {
			err := a.from.hashes(ctx, &z, b.Name, list,
				func(p Part) error { return a.part(ctx, "content of binaries."+b.Name, p) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *archive) part(ctx context.Context, what string, p Part) error {
	in, err := a.from.open(ctx, what, p)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if err := a.header(filestorage.ContentPath(p.Hash), p.Size); err != nil {
		return err
	}
	_, err = io.Copy(a.out, in)
	return err
}

func (a *archive) document(name string, data []byte) error {
	if err := a.header(filestorage.DocumentPath(name), int64(len(data))); err != nil {
		return err
	}
	_, err := a.out.Write(data)
	return err
}

func (a *archive) header(path string, size int64) error {
	return a.out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: a.folder + path, Size: size, Mode: 0o600,
		ModTime: a.of.Ended.UTC().Truncate(time.Second)})
}
