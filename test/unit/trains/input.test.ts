import { describe, expect, test } from 'vitest'
import type { Clock } from '../../../apps/trains/clock.js'
import { readLines, type Line } from '../../../apps/trains/input/lines.js'
import { countFilledLines, ndjsonSource } from '../../../apps/trains/input/ndjson-source.js'
import { paced } from '../../../apps/trains/input/pacing.js'
import { Findings, type Finding } from '../../../apps/trains/input/findings.js'
import type { TimedMessage } from '../../../apps/trains/input/source.js'
import { Log } from '../../../apps/trains/log/log.js'

/** Yields the bytes of a text in pieces of the given size. */
async function* pieces(text: string | Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let begin = 0; begin < bytes.length; begin += size) yield bytes.subarray(begin, begin + size)
}

async function linesOf(text: string | Uint8Array, size: number, limit?: number): Promise<Line[]> {
  const lines: Line[] = []
  for await (const batch of readLines(pieces(text, size), limit)) lines.push(...batch)
  return lines
}

describe('lines', () => {
  test.each([1, 2, 3, 5, 1000])('are the same in pieces of %i bytes', async size => {
    expect(await linesOf('\uFEFFone\r\ntwö 🚂\n\n\uFEFFlast', size)).toEqual([
      { number: 1, text: 'one' },
      { number: 2, text: 'twö 🚂' },
      { number: 3, text: '' },
      { number: 4, text: '\uFEFFlast' },
    ])
  })

  const tooLong = (length: number) => ({
    kind: 'too long',
    reason: `the line has ${length} characters, more than the limit of 10`,
  })

  test.each([1, 7, 1000])('that are too long are refused, and no others: pieces of %i bytes', async size => {
    const lines = await linesOf(`a\n${'b'.repeat(50)}\n${'c'.repeat(10)}\n${'d'.repeat(11)}`, size, 10)
    expect(lines).toEqual([
      { number: 1, text: 'a' },
      { number: 2, text: '', fault: tooLong(50) },
      { number: 3, text: 'cccccccccc' },
      { number: 4, text: '', fault: tooLong(11) },
    ])
  })

  test('of an endless line only the limit is in memory', async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      const chunk = Buffer.alloc(65_536, 0x61)
      for (let count = 0; count < 2000; count++) yield chunk
    }
    const before = process.memoryUsage().heapUsed
    for await (const batch of readLines(endless())) {
      expect(batch).toMatchObject([
        { number: 1, fault: { reason: expect.stringContaining('131072000 characters') } },
      ])
    }
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1024 * 1024)
  })
})

describe('messages as lines of JSON', () => {
  async function read(text: string) {
    const rejected: Finding[] = []
    const source = ndjsonSource(
      { file: 'in', bytes: pieces(text, 10), total: undefined },
      { rejected: finding => rejected.push(finding), repaired: () => undefined },
    )
    const messages: unknown[] = []
    for await (const batch of source.batches()) messages.push(...batch.map(({ message }) => message))
    const kinds = new Set(rejected.map(({ kind }) => kind))
    return { messages, kinds, rejected: rejected.map(({ line, reason }) => `${line}: ${reason}`) }
  }

  test('bad lines are rejected with number and reason, and the rest continues', async () => {
    const { messages, kinds, rejected } = await read(
      [
        '{"id":"1","type":"create","train":"T","location":"A"}',
        '{"id":"2","type":"create"',
        '',
        '{"id":"3","type":"move","train":"T"}',
        '   ',
        '[1]',
        '{"id":"1","type":"move","train":"T","to":"A"}',
        `{"id":"${'4'.repeat(70_000)}"}`,
        '{"id":"5","type":"move","train":"T","to":"B"}\r',
        '{"id":"3","type":"delete","train":"T"}',
        '[1, 2]',
        '{"id":"6","type":"move","train":"T","to":"\uFFFD"}',
      ].join('\n'),
    )
    expect(messages).toEqual([
      { id: '1', type: 'create', train: 'T', location: 'A' },
      { id: '5', type: 'move', train: 'T', to: 'B' },
      { id: '3', type: 'delete', train: 'T' },
    ])
    expect(rejected).toEqual([
      expect.stringMatching(/^2: invalid JSON: /),
      '4: "to" is missing',
      '6: a message must be an object, got an array',
      '7: duplicate "id" "1", first on line 1',
      '8: the line has 70009 characters, more than the limit of 65536',
      '11: a message must be an object, got an array',
      '12: the line is not valid UTF-8',
    ])
    expect([...kinds]).toEqual(['not JSON', 'to', 'not an object', 'duplicate id', 'too long', 'not UTF-8'])
  })

  test('are counted in advance, without empty lines', async () => {
    expect(await countFilledLines(pieces('', 3))).toBe(0)
    expect(await countFilledLines(pieces('a\n\n \r\nb\nc', 2))).toBe(3)
    expect(await countFilledLines(pieces('a\nb\n', 3))).toBe(2)
  })

  test('faults are counted by file and kind, and the first of each is kept and logged', () => {
    const logged: unknown[] = []
    const findings = new Findings(new Log({ write: line => logged.push(JSON.parse(line)) }, 'warn'))
    for (let line = 1; line <= 1000; line++)
      findings.rejected({ file: line % 2 === 0 ? 'even' : 'odd', line, kind: 'k', reason: `has ${line}` })
    for (const line of [7, 5]) findings.rejected({ file: 'odd', line, kind: 'other', reason: `is ${line}` })
    findings.repaired({ file: 'odd', line: 6, kind: 'k', reason: 'was repaired' })
    const { rejected, rejections, repaired, repairs } = findings.summary
    expect([rejected, repaired]).toEqual([1002, 1])
    expect(rejections).toEqual([
      { file: 'odd', kind: 'k', lines: 500, first: { line: 1, reason: 'has 1' } },
      { file: 'even', kind: 'k', lines: 500, first: { line: 2, reason: 'has 2' } },
      { file: 'odd', kind: 'other', lines: 2, first: { line: 5, reason: 'is 5' } },
    ])
    expect(repairs).toEqual([
      { file: 'odd', kind: 'k', lines: 1, first: { line: 6, reason: 'was repaired' } },
    ])
    expect(logged).toMatchObject([
      { event: 'rejected', line: 1 },
      { event: 'rejected', line: 2 },
      { event: 'rejected', line: 7 },
      { event: 'repaired', line: 6 },
    ])
  })
})

/** A clock that advances only while a caller sleeps. */
class SleepersClock implements Clock {
  time = 1000
  readonly slept: number[] = []

  now(): number {
    return this.time
  }

  async sleep(duration: number): Promise<void> {
    this.slept.push(duration)
    this.time += duration
  }
}

describe('pacing', () => {
  const timed = (...times: number[]): TimedMessage[] =>
    times.map(time => ({ message: { id: String(time), type: 'delete', train: 'T' }, time }))

  async function* stream(...batches: TimedMessage[][]): AsyncGenerator<readonly TimedMessage[]> {
    yield* batches
  }

  test('yields each message when it is due, those of the same time together', async () => {
    const clock = new SleepersClock()
    const heard: string[] = []
    const batches = stream(timed(3600, 3600, 3660), timed(3660, 3780))
    for await (const batch of paced(batches, 60, clock, new AbortController().signal)) {
      heard.push(`${clock.time}: ${batch.map(({ message }) => message.id).join(' ')}`)
    }
    expect(heard).toEqual(['1000: 3600 3600', '2000: 3660', '2000: 3660', '4000: 3780'])
    expect(clock.slept).toEqual([1000, 2000])
  })
})
