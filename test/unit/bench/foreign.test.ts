import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { tellAddress } from '../../../bench/lockers/address-file.js'
import { foreign } from '../../../bench/lockers/foreign.js'
import type { Performer } from '../../../bench/processes/performer.js'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-foreign-'))
  await tellAddress(folder, 'host:1')
})

afterEach(() => rm(folder, { recursive: true }))

/** Starts a one-line program that reports ready and answers each order with this code. @param answer JavaScript */
function start(answer: string, program = process.execPath): Promise<Performer> {
  const script = `
    process.stdin.on('data', order => { ${answer} })
    require('fs').writeFileSync(${JSON.stringify(join(folder, 'told'))}, process.argv.slice(1).join(' '))
    console.log('ready')`
  const library = foreign({
    name: 'peer',
    program: { program, argv: ['-e', script] },
    more: ['fair'],
    support: () => Promise.reject(new Error('not needed')),
  })
  return library.start({ folder, process: 1, processes: 2, keys: ['key'], tasks: 4, isGuarded: true })
}

const WINDOW = { startAt: 1000.5, endAt: 2000.5 }

test('the figures of several threads for a window are combined', async () => {
  const answer = [
    'waits 1.5 2',
    'requested 1000.6 1100',
    'broken two were inside',
    'waits',
    'requested',
    'performed 2',
  ]
  const peer = await start(
    `if (String(order) === 'perform 1000.5 2000.5\\n') console.log(${JSON.stringify(answer.join('\n'))})`,
  )
  expect(await peer.perform(WINDOW)).toEqual({
    operations: 2,
    waits: Float64Array.of(1.5, 2),
    requested: Float64Array.of(1000.6, 1100),
    broken: 'two were inside',
  })
  await peer.stop()
})

test.each([
  ['says that it failed', `console.log('failed no server')`, 'peer: no server'],
  ['ends', 'process.exit(1)', 'the program of peer has ended'],
  ['says something else', `console.log('hello')`, 'a program of the bench said hello'],
])('a program that %s fails its window', async (_, answer, message) => {
  const peer = await start(answer)
  await expect(peer.perform(WINDOW)).rejects.toThrow(message)
  await peer.stop()
})
