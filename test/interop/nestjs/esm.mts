/** An application in ES modules, without a server. */
import { Injectable, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { BusyError, type Grant } from 'signalbox'
import { CurrentGrant, Locked, SignalboxModule } from 'signalbox-nestjs'

@Injectable()
class Doors {
  @Locked('door', { wait: 0 })
  async enter(then: () => Promise<unknown>, @CurrentGrant() grant?: Grant): Promise<unknown> {
    return [grant!.keys, await then()]
  }
}

@Module({
  imports: [SignalboxModule.forRoot({ source: 'memory:', detectDeadlocks: false })],
  providers: [Doors],
})
class ApplicationModule {}

const application = await NestFactory.createApplicationContext(ApplicationModule, { logger: false })
const doors = application.get(Doors)
const again = (): Promise<unknown> =>
  doors.enter(async () => undefined).catch((error: unknown) => error instanceof BusyError)
console.log(JSON.stringify(await doors.enter(again)))
await application.close()
const late = await doors
  .enter(async () => undefined)
  .catch((error: unknown) => (error as { code: string }).code)
console.log(late)
