import type { Action, CloseAction, ForceAction, RepeatAction } from './action.js'
import { LockWork } from './lock-work.js'
import type { SimulatedProcess } from './process.js'
import { Random } from './random.js'
import { transact, write } from './store-work.js'
import type { World } from './world.js'
import { lockRequest } from '../support/lock-request.js'

/** Begins an action. Skips it if its process is not ready. */
export function begin(world: World, action: Action): void {
  const process = world.places[action.place]!
  if (!world.ready(action)) return
  if (action.kind !== 'repeat') world.history.note(process.name, `begins ${action.kind}`, action)
  switch (action.kind) {
    case 'lock':
      for (let caller = 0; caller < action.callers; caller++)
        world.do(process, 'uses a lock', () => new LockWork(world, process, action).run())
      return
    case 'transaction':
      for (let caller = 0; caller < action.callers; caller++)
        world.do(process, 'makes a change', () => transact(world, process, action, caller))
      return
    case 'write':
      return world.do(process, 'writes', () => write(world, process, action))
    case 'watch':
      return world.watchers.begin(process, action)
    case 'crash':
      world.crash(process, action.severed)
      if (action.revoked) revokeFromElsewhere(world, process.session)
      return world.replace(action.place, action.pause)
    case 'freeze':
      return world.freeze(process, action.duration, action.timersFirst)
    case 'cut':
      process.cutUntil = world.timeline.now + action.duration
      return process.troubled(process.cutUntil + world.climate.timeout)
    case 'force':
      return world.do(process, 'takes a grant away', () => force(world, process, action))
    case 'revoke':
      return revoke(world, process, world.places[action.other]!.session)
    case 'expel':
      process.open = false
      world.connections.get(process)!.expel()
      return world.replace(action.place, action.pause)
    case 'close':
      world.do(process, 'closes its box', () => close(process, action))
      return world.replace(action.place, action.pause)
    case 'repeat':
      return repeat(world, action)
  }
}

async function close(process: SimulatedProcess, { drain }: CloseAction): Promise<void> {
  process.open = false
  await process.box!.close(drain === undefined ? {} : { drain })
}

/** Inspects the locks, waits, and forces the release of a grant that may have another holder by then. */
async function force(world: World, process: SimulatedProcess, { seed, pause }: ForceAction): Promise<void> {
  const held: { key: string; token: bigint }[] = []
  try {
    for await (const { key, holders } of process.box!.inspect())
      for (const { token } of holders) held.push({ key, token: token! })
    if (held.length === 0) return
    const { key, token } = held[seed % held.length]!
    await process.sleep(pause)
    const freed = await process.box!.forceRelease(key, token)
    world.history.note(process.name, 'took away', { key, token, freed })
  } catch (error) {
    expectOutage(world, error)
  }
}

function revoke(world: World, process: SimulatedProcess, session: string): void {
  if (session === '') return
  world.do(process, 'revokes a session', async () => {
    await process.box!.revoke(session).catch((error: unknown) => expectOutage(world, error))
  })
}

function revokeFromElsewhere(world: World, session: string): void {
  const other = world.places.find(process => process.open)
  if (other) revoke(world, other, session)
}

function expectOutage(world: World, error: unknown): void {
  const { code } = error as { code?: string }
  if (code !== 'UNAVAILABLE' && code !== 'INDETERMINATE' && code !== 'CLOSED')
    world.history.violate('P10', `an operator gets ${String(error)}`)
}

/**
 * Sends the server an operation on a grant again, or one that names an earlier grant. Neither may affect another grant.
 */
function repeat({ server, table }: World, { seed }: RepeatAction): void {
  const random = new Random('repeat', seed)
  const [holder] = random.sample(table.holders(), 1)
  if (holder && random.chance(0.5)) {
    const { id, session, claims, number } = holder
    const type = random.pick(['release', 'renew'] as const)
    if (server.knows(session))
      server.execute(session, {
        type,
        request: lockRequest(id, claims),
        number: number - 1,
        lease: holder.lease,
      })
    return
  }
  const again = server.recent.filter(
    ({ session, operation }) =>
      server.knows(session) &&
      (operation.type === 'release' ||
        operation.type === 'renew' ||
        (operation.type === 'commit' && operation.guard !== undefined)),
  )
  if (again.length > 0) {
    const { session, operation } = random.pick(again)
    server.execute(session, operation)
  }
}
