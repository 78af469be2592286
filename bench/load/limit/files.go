package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/labstack/echo/v4"
)

// files stores files in a folder, durably and with their hashes, and nothing else.
type files struct{ folder string }

func serveFiles(e *echo.Echo, folder string) error {
	f := files{folder}
	e.PUT("/files/:name", f.put)
	e.GET("/files/:name", f.get)
	return os.MkdirAll(folder, 0o700)
}

func (f files) put(c echo.Context) error {
	file, err := os.CreateTemp(f.folder, "tmp-")
	if err != nil {
		return err
	}
	sum := sha256.New()
	buffer := make([]byte, 128<<10)
	_, err = io.CopyBuffer(io.MultiWriter(file, sum), struct{ io.Reader }{c.Request().Body}, buffer)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), f.path(c)); err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, map[string]string{"hash": hex.EncodeToString(sum.Sum(nil))})
}

func (f files) get(c echo.Context) error {
	http.ServeFile(c.Response().Writer, c.Request(), f.path(c))
	return nil
}

func (f files) path(c echo.Context) string {
	return filepath.Join(f.folder, filepath.Base(c.Param("name")))
}
