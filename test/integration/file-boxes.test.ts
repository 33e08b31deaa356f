import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { open, type Box } from 'signalbox'
import { describe, expect, test } from 'vitest'
import { locks, until } from '../../packages/conformance/src/time.js'
import { place } from '../support/file/places.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

describe('fifty boxes of one process on one folder', () => {
  test('exclude each other, wake each other, and leave no descriptor behind', async () => {
    const here = place()
    // What is loaded and opened once for all stays.
    await (await open(here.url)).close()
    const descriptors = (): number => (process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0)
    const before = descriptors()
    const boxes = await Promise.all(Array.from({ length: 50 }, () => open(here.url)))
    let inside = 0
    let sum = 0
    let last = 0n
    const work = async (box: Box): Promise<void> => {
      for (let round = 0; round < 4; round++) {
        await box.mutex('a', 'b').run(async grant => {
          expect(++inside).toBe(1)
          expect(grant.token).toBeGreaterThan(last)
          last = grant.token
          const read = sum
          await new Promise(setImmediate)
          sum = read + 1
          inside--
        })
        await box
          .store('s')
          .transaction(['sum'], transaction =>
            transaction.put('sum', (transaction.get<number>('sum') ?? 0) + 1),
          )
      }
    }
    await Promise.all(boxes.map(work))
    expect(sum).toBe(200)
    expect(await boxes[7]!.store('s').get('sum')).toMatchObject({ value: 200 })
    expect(await locks(boxes[0]!)).toEqual([])
    await Promise.all(boxes.map(box => box.close()))
    await until('all descriptors are closed', () => {
      // libsql closes a database with the last of its statements, which is garbage from now on.
      collect()
      return descriptors() <= before
    })
    expect(readdirSync(here.folder).filter(name => name.endsWith('.box'))).toEqual([])
  })
})

describe('closing', () => {
  test('closing during commits settles each of them', async () => {
    const here = place()
    for (let round = 0; round < 30; round++) {
      const box = await open(here.url)
      const store = box.store('s')
      const puts = Array.from({ length: 20 }, async (_, index) => {
        // Some are asked for later, when the closing has begun.
        for (let turns = index % 5; turns > 0; turns--) await new Promise(setImmediate)
        return index % 2 === 0
          ? store.put(`${round} ${index}`, round)
          : store.transaction([`${round} ${index}`], transaction =>
              transaction.put(`${round} ${index}`, round),
            )
      })
      const settled = Promise.allSettled(puts)
      for (let turns = round % 4; turns > 0; turns--) await new Promise(setImmediate)
      await box.close()
      const reader = (await here.box()).store('s')
      for (const [index, outcome] of (await settled).entries()) {
        const found = (await reader.get(`${round} ${index}`)) !== undefined
        if (outcome.status === 'fulfilled') expect(`${index} ${found}`).toBe(`${index} true`)
        else {
          expect(outcome.reason).toMatchObject({ code: expect.stringMatching(/CLOSED|LOST/) as string })
          expect(`${index} ${found}`).toBe(`${index} false`)
        }
      }
    }
  })
})

describe('a folder that is not there', () => {
  test('is created by several processes at once, which then share it', async () => {
    for (let round = 0; round < 3; round++) {
      const here = place()
      const url = `file:${join(here.folder, 'not', 'there', 'yet')}`
      const boxes = await Promise.all(Array.from({ length: 4 }, () => here.process(url)))
      const counts = await Promise.all(
        boxes.map(async box => {
          for (let count = 0; count < 5; count++) {
            await box.mutex('it', ['key'])
            await box.call('put', 's', box.session, count)
            await box.release('it')
          }
          return box.call('count', 's', 'sum', 100)
        }),
      )
      for (const { failures } of counts) expect(failures).toEqual([])
      for (const box of boxes) {
        for (const { session } of boxes) expect(await box.call('get', 's', session)).toBe(4)
      }
    }
  })
})
