import { crc32, deflateRawSync } from 'node:zlib'

/** Returns a zip archive of the given files, deflated. */
export function zipArchive(files: ReadonlyMap<string, Buffer>): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [name, content] of files) {
    const packed = deflateRawSync(content)
    const local = Buffer.concat([
      record(0x04034b50, 0, entryFields(name, content, packed)),
      Buffer.from(name),
      packed,
    ])
    directory.push(
      record(0x02014b50, 20, entryFields(name, content, packed)),
      directoryRest(offset),
      Buffer.from(name),
    )
    parts.push(local)
    offset += local.length
  }
  const listing = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(files.size, 8)
  end.writeUInt16LE(files.size, 10)
  end.writeUInt32LE(listing.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, listing, end])
}

function record(signature: number, madeBy: number, fields: Buffer): Buffer {
  const head = Buffer.alloc(madeBy === 0 ? 4 : 6)
  head.writeUInt32LE(signature, 0)
  if (madeBy !== 0) head.writeUInt16LE(madeBy, 4)
  return Buffer.concat([head, fields])
}

/** The fields that a local header and a directory entry share: from the version needed to the lengths. */
function entryFields(name: string, content: Buffer, packed: Buffer): Buffer {
  const fields = Buffer.alloc(26)
  fields.writeUInt16LE(20, 0)
  fields.writeUInt16LE(8, 4)
  fields.writeUInt32LE(crc32(content), 10)
  fields.writeUInt32LE(packed.length, 14)
  fields.writeUInt32LE(content.length, 18)
  fields.writeUInt16LE(Buffer.byteLength(name), 22)
  return fields
}

/** Comment, disk, attributes, and offset of the entry. */
function directoryRest(offset: number): Buffer {
  const rest = Buffer.alloc(14)
  rest.writeUInt32LE(offset, 10)
  return rest
}
