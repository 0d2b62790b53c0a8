package llm

import "encoding/binary"

// Picture reads the type of an image and its size in pixels from the data. A
// size that cannot be read is 0; the type of what is none of these four is
// empty. The APIs refuse a picture that is cut off so early, or that is called
// what it is not, and with it every request of the conversation from then on.
func Picture(data []byte) (mimeType string, width, height int) {
	is := func(at int, magic string) bool {
		return len(data) >= at+len(magic) && string(data[at:at+len(magic)]) == magic
	}
	switch {
	case is(0, "\x89PNG"):
		if len(data) >= 24 && is(12, "IHDR") {
			width, height = int(binary.BigEndian.Uint32(data[16:])), int(binary.BigEndian.Uint32(data[20:]))
		}
		return "image/png", width, height
	case is(0, "\xFF\xD8\xFF"):
		width, height = sizeJPEG(data)
		return "image/jpeg", width, height
	case is(0, "GIF8"):
		if len(data) >= 10 {
			width, height = int(binary.LittleEndian.Uint16(data[6:])), int(binary.LittleEndian.Uint16(data[8:]))
		}
		return "image/gif", width, height
	case is(0, "RIFF") && is(8, "WEBP"):
		width, height = sizeWebP(data)
		return "image/webp", width, height
	}
	return "", 0, 0
}

// sizeJPEG finds the frame header among the segments.
func sizeJPEG(data []byte) (width, height int) {
	for i := 2; i+9 <= len(data) && data[i] == 0xFF; {
		marker := data[i+1]
		if marker == 0xFF { // a byte that only fills
			i++
			continue
		}
		frame := marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC
		if frame {
			return int(binary.BigEndian.Uint16(data[i+7:])), int(binary.BigEndian.Uint16(data[i+5:]))
		}
		i += 2 + int(binary.BigEndian.Uint16(data[i+2:]))
	}
	return 0, 0
}

// sizeWebP reads the header of each of the three kinds.
func sizeWebP(data []byte) (width, height int) {
	if len(data) < 30 {
		return 0, 0
	}
	switch string(data[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(data[26:]) & 0x3FFF), int(binary.LittleEndian.Uint16(data[28:]) & 0x3FFF)
	case "VP8L":
		bits := int(binary.LittleEndian.Uint32(data[21:]))
		return bits&0x3FFF + 1, bits>>14&0x3FFF + 1
	case "VP8X":
		return 1 + (int(binary.LittleEndian.Uint32(data[24:])) & 0xFFFFFF), 1 + int(data[27]) + int(data[28])<<8 + int(data[29])<<16
	}
	return 0, 0
}
