import { createSocket } from 'node:dgram'
import { systemClock } from '../../../src/base/clock.js'
import { open, type BoxLimiterOptions } from '../../../src/index.js'
import { pause } from '../../../packages/conformance/src/time.js'
import { Random } from '../../../packages/conformance/src/random.js'

/** The task of a process: its argument. */
export interface TenantTask {
  readonly url: string
  readonly options: BoxLimiterOptions
  /** UDP port of the service. */
  readonly port: number
  readonly seed: number
  /** Number of callers of the tenant `flood` that call without a break. */
  readonly flood: number
  /** Tenants that call once a second, at random times. */
  readonly occasional: readonly string[]
}

/** A report of a call: when it began, and again with what it has used when it is over. */
export interface CallReport {
  /** Different for each call. */
  readonly id: string
  readonly tenant: string
  /** Time of the machine's monotonic clock at which the call began. */
  readonly at: number
  /** Milliseconds. */
  readonly waited: number
  readonly tokens: number
}

/** The service takes this long, in milliseconds. */
const CALL_TIME = 20

/**
 * Calls a service on behalf of several tenants, until it is killed. A call reserves an estimate of its tokens, and
 * settles the true number. Reports calls by datagrams.
 */
const { url, options, port, seed, flood, occasional } = JSON.parse(process.argv[2]!) as TenantTask
const random = new Random(seed)
const box = await open(url)
const limiter = box.limiter('service', options)
const socket = createSocket('udp4')
await new Promise<void>(resolve => socket.connect(port, '127.0.0.1', resolve))
const report = (call: CallReport): void => socket.send(JSON.stringify(call))
let calls = 0

async function call(tenant: string): Promise<void> {
  const since = systemClock.now()
  const estimate = 20 + random.below(80)
  const permit = await limiter.acquire({ tokens: estimate }, { tenant })
  const at = systemClock.now()
  const begun = { id: `${process.pid} ${calls++}`, tenant, at, waited: at - since, tokens: estimate }
  report(begun)
  await pause(CALL_TIME)
  const tokens = 10 + random.below(estimate - 10)
  permit.settle({ tokens })
  permit.release()
  report({ ...begun, tokens })
}

async function callAgainAndAgain(): Promise<void> {
  for (;;) await call('flood')
}

async function callNowAndThen(tenant: string): Promise<void> {
  for (;;) {
    await pause(-Math.log(1 - random.below(1e6) / 1e6) * 1000)
    void call(tenant)
  }
}

// Its parent may be gone.
process.once('disconnect', () => process.exit())
for (const tenant of occasional) void callNowAndThen(tenant)
for (let caller = 0; caller < flood; caller++) void callAgainAndAgain()
process.send!('ready')
