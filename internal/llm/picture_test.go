package llm

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The type and the size of a picture are read from its data, whatever they are.
func TestPicture(t *testing.T) {
	rect := image.Rect(0, 0, 300, 200)
	var p, j, g bytes.Buffer
	for _, err := range []error{png.Encode(&p, image.NewGray(rect)), jpeg.Encode(&j, image.NewGray(rect), nil), gif.Encode(&g, image.NewGray(rect), nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	webp := func(chunk string, at int, body ...byte) []byte {
		data := make([]byte, 40)
		copy(data, "RIFF\x00\x00\x00\x00WEBP"+chunk)
		copy(data[at:], body)
		return data
	}
	type size struct {
		Kind          string
		Width, Height int
	}
	for name, tt := range map[string]struct {
		data []byte
		want size
	}{
		"png":           {p.Bytes(), size{"image/png", 300, 200}},
		"jpeg":          {j.Bytes(), size{"image/jpeg", 300, 200}},
		"gif":           {g.Bytes(), size{"image/gif", 300, 200}},
		"jpeg, filled":  {append([]byte("\xFF\xD8\xFF\xFF"), j.Bytes()[3:]...), size{"image/jpeg", 300, 200}},
		"webp lossy":    {webp("VP8 ", 26, 0x2C, 0x41, 0xC8, 0x40), size{"image/webp", 300, 200}},
		"webp lossless": {webp("VP8L", 21, 0x2B, 0xC1, 0x31, 0x10), size{"image/webp", 300, 200}},
		"webp extended": {webp("VP8X", 24, 0x2B, 0x01, 0x00, 0xC7, 0x00, 0x00), size{"image/webp", 300, 200}},
		"cut png":       {p.Bytes()[:10], size{"image/png", 0, 0}},
		"cut jpeg":      {j.Bytes()[:20], size{"image/jpeg", 0, 0}},
		"cut gif":       {g.Bytes()[:7], size{"image/gif", 0, 0}},
		"cut webp":      {webp("VP8L", 21)[:16], size{"image/webp", 0, 0}},
		"svg":           {[]byte("<svg/>"), size{}},
		"nothing":       {nil, size{}},
	} {
		kind, width, height := Picture(tt.data)
		if diff := cmp.Diff(tt.want, size{kind, width, height}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func FuzzPicture(f *testing.F) {
	f.Add([]byte("\xFF\xD8\xFF\xE0\x00\x00\xFF\xC0\x00\x0B\x08\x00\x01\x00\x01"))
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPVP8X"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if kind, w, h := Picture(data); w < 0 || h < 0 || kind == "" && w+h != 0 {
			t.Errorf("%s of %d x %d", kind, w, h)
		}
	})
}
