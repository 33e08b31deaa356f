import { readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { until } from '../../packages/conformance/src/time.js'
import { CLAIM_WINDOW } from '../../src/engine/wait-times.js'
import { place } from '../support/file/places.js'

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

test('a wait that ends before the database is free leaves no request', async () => {
  const here = place()
  const box = await here.box()
  const connection = await here.connection()
  const counter = (): unknown => connection.prepare(`select queue from queues where key = ''`).get()![0]
  const before = counter()
  expect(connection.begin()).toBe(true)
  const waits = Array.from({ length: 50 }, (_, index) => box.mutex(`key ${index}`).acquire({ wait: 20 }))
  // Handles all rejections from the start, because the waits end at the same time, or one by one on a busy machine.
  await Promise.all(waits.map(wait => expect(wait).rejects.toMatchObject({ code: 'TIMED_OUT' })))
  connection.exec('rollback')
  await (await box.mutex('other').acquire()).release()
  // One number for the place in the queue, and one for the grant.
  expect(Number(counter()) - Number(before)).toBe(2)
})

test('a folder that is not there is created by several processes at once, which then share it', async () => {
  for (let round = 0; round < 3; round++) {
    const here = place()
    const url = `file:${join(here.folder, 'not', 'there', 'yet')}`
    const boxes = await Promise.all(Array.from({ length: 4 }, () => here.process(url)))
    for (const box of boxes) await box.call('put', 's', box.session, round)
    for (const { session } of boxes) expect(await boxes[0]!.call('get', 's', session)).toBe(round)
  }
})
