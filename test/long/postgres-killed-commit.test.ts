import pg from 'pg'
import { expect, test } from 'vitest'
import { open, type Box } from '../../src/index.js'
import { Tap } from '../support/postgres/tap.js'
import { startPostgres } from '../support/servers/postgres.js'

/** More packets than a commit sends in either direction. */
const MAX_PACKETS = 40

/** One commit: it writes one number to two keys. */
type Commit = (box: Box, url: string, number: number) => Promise<unknown>

const commits: readonly (readonly [string, Commit])[] = [
  [
    'a put',
    (box, _, number) =>
      box
        .store('s')
        .put('one', number)
        .then(() => undefined),
  ],
  [
    'a transaction with an id',
    (box, _, number) =>
      box.store('s').transaction(
        ['one', 'other'],
        tx => {
          tx.put('one', number)
          tx.put('other', number)
        },
        { id: `commit ${number}` },
      ),
  ],
  [
    'a transaction of a caller',
    async (box, url, number) => {
      const client = new pg.Client(url)
      client.on('error', () => undefined)
      await client.connect()
      try {
        await client.query('begin')
        await client.query(`update ledger set number = ${number}`)
        await box.store('s').transaction(
          ['one', 'other'],
          tx => {
            tx.put('one', number)
            tx.put('other', number)
          },
          { in: client },
        )
        await client.query('commit')
      } finally {
        await client.end().catch(() => undefined)
      }
    },
  ],
]

test.each(commits)(
  '%s that was acknowledged outlives a crash at each of its packets',
  async (what, commit) => {
    await using server = await startPostgres()
    await server.query('create table ledger (number int); insert into ledger values (0)')
    let last = 0
    let acknowledged = 0
    for (const from of ['client', 'server'] as const) {
      for (let killedAt = 1; killedAt <= MAX_PACKETS; killedAt++) {
        await using tap = await Tap.start(server.address.port)
        const url = tap.through(server.url)
        const box = await open(url)
        await box.store('s').get('one')
        await server.stopWriter()
        const number = ++last
        let passed = 0
        let killed: Promise<void> | undefined
        tap.decide = packet => {
          if (packet.from === from && ++passed === killedAt) {
            // The packets of the client still arrive, and those of the server do not.
            if (from === 'client') setTimeout(() => void (killed = server.kill()), 1)
            else killed = server.kill()
          }
          return killed ? 'lost' : 0
        }
        const isDone = await commit(box, url, number).then(
          () => true,
          () => false,
        )
        const isBeyond = passed < killedAt
        tap.decide = () => 0
        if (!isBeyond) {
          await server.kill()
          await killed
          await server.start()
        }
        await box.close().catch(() => undefined)
        await using again = await open(server.url)
        const one = (await again.store('s').get('one'))?.value ?? 0
        if (isDone) {
          expect(one, `acknowledged, killed at packet ${killedAt} of the ${from}`).toBe(number)
          acknowledged++
        }
        if (what !== 'a put') expect((await again.store('s').get('other'))?.value ?? 0).toBe(one)
        if (what === 'a transaction of a caller') {
          const [row] = await server.query<{ number: number }>('select number from ledger')
          expect(row!.number).toBe(one)
        }
        if (isBeyond) break
      }
    }
    expect(acknowledged).toBeGreaterThan(0)
  },
)
