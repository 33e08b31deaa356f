import { describe, expect, test } from 'vitest'
import { LostError } from '../../src/base/errors.js'
import { open } from '../../src/open.js'
import { locks, queued } from '../../packages/conformance/src/time.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'

describe.concurrent('a server', () => {
  test('that loses its data costs a live box only its grants', async () => {
    await using server = await startZooKeeper()
    await using box = await open(`zookeeper://${server.address}?sessionTimeout=2s`)
    for (let round = 0; round < 20; round++) await box.store('s').put('key', round)
    const held = await box.mutex('key').acquire({ lease: '1h' })
    await server.kill()
    server.wipe()
    await server.start()
    await until(() => held.signal.aborted)
    expect(() => held.assertHeld()).toThrow(LostError)
    await until(() =>
      box
        .mutex('key')
        .run(() => true)
        .catch(() => false),
    )
    expect(await box.store('s').get('key')).toBeUndefined()
  })

  test('that is down for longer than a holder’s session keeps the places of waiters with longer sessions', async () => {
    await using server = await startZooKeeper()
    const opened = (sessionTimeout: string) =>
      open(`zookeeper://${server.address}/place?sessionTimeout=${sessionTimeout}`)
    await using short = await opened('2s')
    await using first = await opened('40s')
    await using second = await opened('40s')
    const held = await short.mutex('key').acquire({ lease: '1h' })
    const waiting = [first.mutex('key').acquire()]
    await queued(first, 'key', 1)
    waiting.push(second.mutex('key').acquire())
    await queued(first, 'key', 2)
    const [before] = await locks(first, 'key')
    await server.kill()
    await until(() => held.signal.aborted)
    expect(() => held.assertHeld()).toThrow(LostError)
    await server.start()
    const late = short.mutex('key').acquire()
    const grant = await waiting[0]!
    const [after] = await locks(first, 'key')
    // The same sessions have the same requests. Only the holder is gone, and the new request is last.
    expect(after!.holders[0]!.session).toBe(first.session)
    expect(before!.waiters.map(({ session }) => session)).toEqual([first.session, second.session])
    expect(grant.token).toBeGreaterThan(held.token)
    await grant.release()
    const next = await waiting[1]!
    expect(next.token).toBeGreaterThan(grant.token)
    await next.release()
    const last = await late
    expect(last.token).toBeGreaterThan(next.token)
    await last.release()
  })
})
