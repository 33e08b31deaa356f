import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../../src/base/clock.js'
import { ClusterLink } from '../../../../../src/engines/redis/clients/cluster-link.js'
import { DEFAULT_TIMEOUTS, RedisReplyError } from '../../../../../src/engines/redis/clients/connection.js'
import { slotOf } from '../../../../../src/engines/redis/slot.js'
import { FakeServer } from './fake-server.js'

const KEY = 'key'
const OWNER = '10.0.0.1:7000'
const IMPORTER = '10.0.0.2:7000'

test('a command whose keys are on their way to another node is sent there with ASKING, and the next one is not', async () => {
  const servers: Readonly<Record<string, FakeServer>> = {
    [OWNER]: new FakeServer(),
    [IMPORTER]: new FakeServer(),
  }
  const asked: string[] = []
  for (const [node, server] of Object.entries(servers)) {
    const other = node === OWNER ? IMPORTER : OWNER
    let isAsking = false
    server.answer = ([command], resolve, reject) => {
      if (command === 'CLUSTER') return resolve([[0, 16_383, ['10.0.0.1', 7000, 'id', []]]])
      if (command !== 'ASKING' && command !== 'GET') return resolve('OK')
      asked.push(`${command} ${node}`)
      if (command === 'ASKING') {
        isAsking = true
        return resolve('OK')
      }
      if (isAsking) resolve('value')
      else reject(new RedisReplyError(`${node === OWNER ? 'ASK' : 'MOVED'} ${slotOf(KEY)} ${other}`))
      isAsking = false
    }
  }
  const link = new ClusterLink(
    {
      name: 'redis+cluster://host',
      listener: { message: () => undefined, resubscribed: () => undefined },
      clock: new VirtualClock(),
      timeouts: DEFAULT_TIMEOUTS,
    },
    {
      seeds: () => Promise.resolve([OWNER]),
      rename: node => node,
      connect: node => servers[node]!.connect,
    },
  )
  await link.connect()
  for (const _ of ['first', 'second']) {
    asked.length = 0
    expect(await link.command(KEY, ['GET', KEY])).toBe('value')
    expect(asked).toEqual([`GET ${OWNER}`, `ASKING ${IMPORTER}`, `GET ${IMPORTER}`])
  }
  await link.close()
})
