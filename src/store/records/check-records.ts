import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Records } from './records.js'

interface Demand {
  readonly name: string
  /** @param key a key of this requirement alone, which its further keys begin with. */
  readonly check: (records: Clients, key: string) => Promise<void>
}

/** Two adapters to the same records, which may be the same object. */
interface Clients {
  readonly one: Records
  readonly other: Records
}

/** Time for which the records of the checks are kept, in milliseconds. */
const KEPT = 60_000
/** Time for which a record is kept that the next call must find, even on a busy machine, in milliseconds. */
const BRIEFLY = 500
const WRITERS = 16
const MAX_KEY_LENGTH = 1024
const LARGE = 200_000

/**
 * Checks the caller's adapter against its real store, under keys of its own. The store may drop the records of the
 * checks after a minute.
 * @param other a second adapter to the same store, with a connection of its own, like that of another process.
 * @throws Error with one line for each requirement that is not met: the expected and the actual result
 */
export async function checkRecords(one: Records, other: Records = one): Promise<void> {
  const prefix = `check-${randomBytes(6).toString('hex')}/`
  const failures: string[] = []
  for (const [index, { name, check }] of DEMANDS.entries()) {
    try {
      await check({ one, other }, `${prefix}${index}`)
    } catch (error) {
      failures.push(`- ${name}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  if (failures.length > 0) throw new Error(`these records fail the checks:\n${failures.join('\n')}`)
}

const DEMANDS: readonly Demand[] = [
  {
    name: 'a key without a record has none',
    async check({ one }, key) {
      expectEqual(await one.get(key), undefined, 'get')
      expectEqual(await one.compareAndSet(key, await someVersion(one, key), 'x', KEPT), undefined, 'writing')
      expectEqual(await one.get(key), undefined, 'get')
    },
  },
  {
    name: 'a record is created only where none exists',
    async check({ one, other }, key) {
      const version = await written(one, key, undefined, 'first')
      expectEqual(await other.compareAndSet(key, undefined, 'second', KEPT), undefined, 'making it again')
      expectEqual(await other.get(key), { text: 'first', version }, 'get')
    },
  },
  {
    name: 'a record is written over only in the version that is named',
    async check({ one, other }, key) {
      const first = await written(one, key, undefined, 'first')
      const second = await written(other, key, first, 'second')
      expectEqual(
        await one.compareAndSet(key, first, 'third', KEPT),
        undefined,
        'writing over an old version',
      )
      expectEqual(await one.get(key), { text: 'second', version: second }, 'get')
      await written(one, key, second, 'third')
      expectEqual((await other.get(key))?.text, 'third', 'get')
    },
  },
  {
    name: 'a version comes again only with the very same text',
    async check({ one }, key) {
      const texts = ['a', 'b', 'a ', 'b']
      const seen = new Map<unknown, string>()
      let version: unknown
      for (const text of texts) {
        version = await written(one, key, version, text)
        const before = seen.get(version) ?? text
        expectEqual(before, text, `the text of version ${String(version)}`)
        seen.set(version, text)
      }
    },
  },
  {
    name: 'what was written is read at once, by every client',
    async check({ one, other }, key) {
      let version: unknown
      for (let round = 0; round < 20; round++) {
        version = await written(round % 2 === 0 ? one : other, key, version, `${round}`)
        const reader = round % 2 === 0 ? other : one
        expectEqual(await reader.get(key), { text: `${round}`, version }, 'get')
      }
    },
  },
  {
    name: 'of several who make a record at once, one does',
    async check({ one, other }, key) {
      const writes = Array.from({ length: WRITERS }, (_, index) =>
        (index % 2 === 0 ? one : other).compareAndSet(key, undefined, `writer ${index}`, KEPT),
      )
      const versions = await Promise.all(writes)
      expectEqual(versions.filter(version => version !== undefined).length, 1, 'how many wrote')
      const winner = versions.findIndex(version => version !== undefined)
      expectEqual((await other.get(key))?.text, `writer ${winner}`, 'get')
    },
  },
  {
    name: 'no update is lost',
    async check({ one, other }, key) {
      await written(one, key, undefined, '0')
      const add = async (records: Records): Promise<void> => {
        while (true) {
          const { text, version } = (await records.get(key))!
          const next = String(Number(text) + 1)
          if ((await records.compareAndSet(key, version, next, KEPT)) !== undefined) return
        }
      }
      await Promise.all(Array.from({ length: WRITERS }, (_, index) => add(index % 2 === 0 ? one : other)))
      expectEqual((await one.get(key))?.text, String(WRITERS), 'the sum')
    },
  },
  {
    name: 'keys and texts are kept as they are',
    async check({ one, other }, key) {
      const keys = [
        'a',
        'A',
        'a ',
        'ä',
        'a\u0308',
        '\u{1F682}',
        '%_*?',
        'x'.repeat(MAX_KEY_LENGTH - key.length - 1),
      ]
      const texts = ['', ' ', '"\\\'', '\u{1F682}\n\t', 'ä', 'a\u0308', '{}', 'x'.repeat(LARGE)]
      await Promise.all(
        keys.map((name, index) => written(one, `${key}/${name}`, undefined, `{${texts[index]!}}`)),
      )
      const found = await Promise.all(keys.map(name => other.get(`${key}/${name}`)))
      for (const [index, record] of found.entries()) {
        const expected = `{${texts[index]!}}`
        if (record?.text !== expected)
          throw new Error(`the record of ${show(keys[index])} came back as ${show(record?.text)}`)
      }
    },
  },
  {
    name: 'a record is kept until it expires, and for ever when it has no expiry',
    async check({ one }, key) {
      const version = await written(one, key, undefined, 'for a while', BRIEFLY)
      const now = await one.compareAndSet(key, version, 'for ever', undefined)
      if (now === undefined) throw new Error('it expired too early')
      const short = await written(one, `${key}/short`, undefined, 'for a while', KEPT)
      await new Promise(resolve => setTimeout(resolve, 1.2 * BRIEFLY))
      expectEqual(await one.get(key), { text: 'for ever', version: now }, 'get')
      expectEqual(await one.get(`${key}/short`), { text: 'for a while', version: short }, 'get')
      await written(one, key, now, 'over')
    },
  },
]

/** A version in the format of this store, of another key. */
function someVersion(records: Records, key: string): Promise<unknown> {
  return written(records, `${key}/other`, undefined, 'x')
}

async function written(
  records: Records,
  key: string,
  version: unknown,
  text: string,
  keep = KEPT,
): Promise<unknown> {
  const now = await records.compareAndSet(key, version, text, keep)
  if (now === undefined) throw new Error(`writing ${show(text)} over ${show(version)} was refused`)
  return now
}

function expectEqual(found: unknown, expected: unknown, what: string): void {
  const same = isDeepStrictEqual(found, expected)
  if (!same) throw new Error(`${what} gave ${show(found)} instead of ${show(expected)}`)
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}
