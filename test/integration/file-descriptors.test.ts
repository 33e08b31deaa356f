import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { locks, until } from '../../packages/conformance/src/time.js'
import { place } from '../support/file/places.js'
import { memoryInUse } from '../support/heap.js'

/** Returns the number of open file descriptors of this process. */
function descriptors(): number {
  return readdirSync('/proc/self/fd').length
}

test.runIf(process.platform === 'linux')(
  'boxes take few descriptors each, also while all wait for each other',
  { timeout: 120_000 },
  async () => {
    const here = place()
    const count = 60
    // Opens modules and files that stay open for the life of the process.
    await (await here.box()).close()
    const before = descriptors()
    const perBox = (): number => (descriptors() - before) / count
    const boxes = await Promise.all(Array.from({ length: count }, () => here.box()))
    const alone = perBox()
    // A box has a socket, and connections that prove that other boxes are alive. The files are open once for all boxes.
    expect(alone).toBeLessThan(4)
    const holder = await boxes[0]!.mutex('key').acquire()
    const waits = boxes.slice(1).map(async (box, index) => {
      await box.mutex('key').run(() => box.store('s').put('last', index))
    })
    await until('all wait', async () => (await locks(boxes[0]!))[0]?.waiters.length === count - 1)
    const waiting = perBox()
    await holder.release()
    await Promise.all(waits)
    // In each round, boxes wake others.
    for (let round = 1; round < 6; round++) {
      await Promise.all(
        boxes.map((_, index) => boxes[(index * 7 * round) % count]!.mutex('key').run(() => undefined)),
      )
    }
    expect(Math.max(alone, waiting, perBox())).toBeLessThan(40)
    await Promise.all(boxes.map(box => box.close()))
    await until('all descriptors are closed', async () => {
      // libsql closes a database when its last statement is collected, so this collects garbage.
      await memoryInUse()
      return descriptors() <= before
    })
    expect(readdirSync(here.folder).filter(name => name.endsWith('.box'))).toEqual([])
  },
)

/** Opens a box with few file descriptors left, and prints why that failed. */
const OPEN_WITHOUT_DESCRIPTORS = `
  const { openSync } = require('node:fs')
  const { open } = require('signalbox')
  const url = 'file:' + process.argv[1]
  const opening = async () => {
    await (await open(url)).close()
    try {
      for (;;) openSync('/dev/null', 'r')
    } catch {}
    await open(url).catch(error => console.log(error.code, error.message))
    process.exit()
  }
  void opening()
`

test.runIf(process.platform === 'linux')('a process with too many open files is told so', () => {
  const script = 'ulimit -n 256; exec "$0" -e "$1" "$2"'
  const args = ['-c', script, process.execPath, OPEN_WITHOUT_DESCRIPTORS, place().folder]
  const printed = execFileSync('sh', args, { encoding: 'utf8', timeout: 20_000 })
  expect(printed).toMatch(
    /^UNAVAILABLE could not open a box on file:.*: this process has too many open files\n$/,
  )
})
