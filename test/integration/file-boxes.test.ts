import { readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { open, type Box } from 'signalbox'
import { describe, expect, test } from 'vitest'
import { locks, until } from '../../packages/conformance/src/time.js'
import { CLAIM_WINDOW } from '../../src/engine/wait-times.js'
import { place } from '../support/file/places.js'
import { memoryInUse } from '../support/heap.js'

describe('fifty boxes of one process on one folder', () => {
  test('exclude each other, wake each other, and leave no descriptor behind', async () => {
    const here = place()
    // Opens modules and files that stay open for the life of the process.
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
    await until('all descriptors are closed', async () => {
      // libsql closes a database when its last statement is collected, so this collects garbage.
      await memoryInUse()
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
        // Some begin later, when the box is already closing.
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

describe('boxes of one thread', () => {
  test('wake each other without sockets', async () => {
    const here = place()
    const boxes = await Promise.all(Array.from({ length: 5 }, () => here.box()))
    for (const name of readdirSync(here.folder)) if (name.endsWith('.box')) rmSync(join(here.folder, name))
    let turns = 0
    const began = performance.now()
    await Promise.all(
      boxes.map(async box => {
        for (let turn = 0; turn < 10; turn++) await box.mutex('key').run(() => turns++)
      }),
    )
    expect(turns).toBe(50)
    // Without wake-ups, many turns would begin only after a claim window.
    expect(performance.now() - began).toBeLessThan(5 * CLAIM_WINDOW)
  })

  test('keep the files open until the last of them closes, also while another opens', async () => {
    const here = place()
    for (let round = 0; round < 10; round++) {
      const [one, two] = await Promise.all([here.box(), here.box()])
      await one.store('s').put('key', round)
      const [three] = await Promise.all([here.box(), one.close()])
      expect(await two.store('s').get('key')).toMatchObject({ value: round })
      const [four] = await Promise.all([here.box(), two.close(), three.close()])
      expect(await four.store('s').get('key')).toMatchObject({ value: round })
      const [five] = await Promise.all([here.box(), four.close()])
      await five.mutex('key').run(() => five.store('s').put('key', 'last'))
      await five.close()
    }
  })

  test('share no files that were replaced', async () => {
    const here = place()
    const folder = join(here.folder, 'locks')
    const old = await here.open(`file:${folder}`)
    await old.store('s').put('key', 'old')
    const grant = await old.mutex('key').acquire({ lease: '60s' })
    renameSync(folder, join(here.folder, 'old'))
    const box = await here.open(`file:${folder}`)
    expect(await box.store('s').get('key')).toBeUndefined()
    await box.store('s').put('key', 'new')
    await until('the grant is lost', () => grant.signal.aborted)
    await expect(old.store('s').put('key', 'late')).rejects.toThrow('moved or replaced')
    await old.close()
    expect(await box.store('s').get('key')).toMatchObject({ value: 'new' })
    expect(await (await here.open(`file:${folder}`)).store('s').get('key')).toMatchObject({ value: 'new' })
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
