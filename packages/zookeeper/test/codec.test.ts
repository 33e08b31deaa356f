import { describe, expect, test } from 'vitest'
import { calls } from '../src/calls.js'
import { ProtocolError } from '../src/errors.js'
import { Frames, MAX_REPLY_SIZE } from '../src/frames.js'
import { JuteReader } from '../src/jute-reader.js'
import { JuteWriter } from '../src/jute-writer.js'
import { multi } from '../src/multi.js'
import { Random } from 'signalbox-conformance'

/** Writes a stat as servers encode it. */
function stat(writer: JuteWriter): JuteWriter {
  for (const value of [1n, 2n, 3n, 4n]) writer.long(value)
  return writer.int(5).int(6).int(7).long(8n).int(9).int(10).long(11n)
}

function body(writer: JuteWriter): Buffer {
  return writer.frame().subarray(4)
}

describe('Jute', () => {
  test('written data is read back', () => {
    const text = 'a text, ünïcode and \u{1F682}'
    const frame = new JuteWriter(1)
      .int(-7)
      .long(-(2n ** 63n))
      .bool(true)
      .bytes(Buffer.from([0, 255]))
      .text(text)
      .frame()
    expect(frame.readInt32BE(0)).toBe(frame.length - 4)
    const reader = new JuteReader(frame.subarray(4))
    expect(reader.int()).toBe(-7)
    expect(reader.long()).toBe(-(2n ** 63n))
    expect(reader.bool()).toBe(true)
    expect([...reader.bytes()]).toEqual([0, 255])
    expect(reader.text()).toBe(text)
    expect(reader.left).toBe(0)
    expect(() => reader.int()).toThrow(ProtocolError)
  })

  test('invalid lengths are rejected before anything is allocated', () => {
    for (const length of [-2, -(2 ** 31), 2 ** 31 - 1, 5]) {
      const bytes = body(new JuteWriter().int(length).int(0))
      expect(() => new JuteReader(bytes).bytes()).toThrow(ProtocolError)
      expect(() => new JuteReader(bytes).text()).toThrow(ProtocolError)
      expect(() => new JuteReader(bytes).list(1, () => 0)).toThrow(ProtocolError)
    }
    expect(() => new JuteReader(Buffer.from([2])).bool()).toThrow(ProtocolError)
    expect(new JuteReader(body(new JuteWriter().int(-1))).text()).toBe('')
  })
})

describe('frames', () => {
  const random = new Random(7)
  const all = Array.from({ length: 200 }, (_, index) =>
    new JuteWriter().bytes(Buffer.alloc(random.below(index < 190 ? 50 : 5000), index)).frame(),
  )
  const stream = Buffer.concat(all)

  test('are read completely, no matter how the stream is split', () => {
    for (let round = 0; round < 50; round++) {
      const frames = new Frames()
      const found: Buffer[] = []
      for (let at = 0; at < stream.length;) {
        const size = 1 + random.below(round < 5 ? 3 : 3000)
        found.push(...frames.push(stream.subarray(at, at + size)))
        at += size
      }
      expect(found).toHaveLength(all.length)
      for (const [index, frame] of found.entries()) expect(frame.equals(all[index]!.subarray(4))).toBe(true)
    }
  })

  test('that announce an invalid length are rejected at once', () => {
    for (const length of [-1, MAX_REPLY_SIZE + 1, 0x48545450]) {
      const bytes = Buffer.alloc(4)
      bytes.writeInt32BE(length)
      expect(() => new Frames().push(bytes)).toThrow(ProtocolError)
    }
  })
})

describe('replies that were garbled', () => {
  test('are decoded or rejected, and nothing else happens', () => {
    const random = new Random(31)
    const names = new JuteWriter()
    names.list(['a', 'another', 'lock-0000000007'], name => names.text(name))
    const acl = new JuteWriter()
    acl.list([1, 2], permissions => acl.int(permissions).text('world').text('anyone'))
    const several = stat(new JuteWriter().int(15).bool(false).int(0).text('/a'))
    stat(several.int(5).bool(false).int(0)).int(-1).bool(false).int(-101).int(-101).int(-1).bool(true).int(-1)
    const kinds = [
      [calls.create('/a', Buffer.alloc(0), {}), stat(new JuteWriter().text('/a-0000000001'))],
      [calls.exists('/a'), stat(new JuteWriter())],
      [calls.getData('/a'), stat(new JuteWriter().bytes(Buffer.alloc(100, 1)))],
      [calls.getChildren('/a'), stat(names)],
      [calls.getAcl('/a'), stat(acl)],
      [
        multi([
          calls.create('/a', Buffer.alloc(0), {}),
          calls.setData('/a', Buffer.alloc(0), 1),
          calls.check('/a', 1),
        ]),
        several,
      ],
    ] as const
    let refused = 0
    for (let round = 0; round < 30_000; round++) {
      const [call, writer] = kinds[round % kinds.length]!
      const bytes = Buffer.from(body(writer))
      for (let count = random.below(4); count > 0; count--)
        bytes[random.below(bytes.length)] = random.below(256)
      const cut = random.below(3) === 0 ? bytes.subarray(0, random.below(bytes.length)) : bytes
      try {
        call.read(new JuteReader(cut))
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
        refused++
      }
    }
    expect(refused).toBeGreaterThan(5000)
    expect(refused).toBeLessThan(30_000)
  })
})
