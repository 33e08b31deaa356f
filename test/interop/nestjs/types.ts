/** Code that compiles, and code that must not. Nothing here runs. */
import type { Grant } from 'signalbox'
import { CurrentGrant, Locked, OncePerFleet } from 'signalbox-nestjs'

export class Decorated {
  readonly tenant = 'a'

  @Locked((id: string) => `invoice:${id}`, { wait: '5s' })
  async pay(id: string, @CurrentGrant() grant?: Grant): Promise<string> {
    return `${id} ${grant!.token}`
  }

  @Locked(['a', 'b'])
  async several(count: number): Promise<number> {
    return count
  }

  @Locked(function (this: Decorated, count: number) {
    return `${this.tenant}:${count}`
  })
  async withThis(count: number): Promise<number> {
    return count
  }

  @Locked(count => `count:${count}`)
  async withoutType(count: number): Promise<number> {
    return count
  }

  // @ts-expect-error the key takes a number, the method a string
  @Locked((count: number) => `count:${count}`)
  async otherArguments(count: string): Promise<string> {
    return count
  }

  // @ts-expect-error a method under a lock returns a promise
  @Locked('a')
  synchronous(): string {
    return ''
  }

  // @ts-expect-error there is no key
  @Locked(() => undefined)
  async withoutKey(): Promise<void> {}

  @OncePerFleet('1d', { name: 'nightly', wait: '1h' })
  async job(): Promise<void> {}

  // @ts-expect-error a job that is not run has no result
  @OncePerFleet({ cron: '0 3 * * *' })
  async result(): Promise<string> {
    return ''
  }
}
