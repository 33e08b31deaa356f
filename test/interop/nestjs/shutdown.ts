/** Prints what happens to waiters and boxes while another module waits for its requests. Needs no server. */
import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { open, type Box } from 'signalbox'
import { BOX, SignalboxModule } from 'signalbox-nestjs'

const codeOf = (error: unknown): string => (error as { readonly code: string }).code

let waiting: Promise<unknown>

/** Waits for requests that wait for locks, like the drain of Apollo. */
@Injectable()
class Drain implements OnModuleDestroy {
  async onModuleDestroy(): Promise<void> {
    await waiting
  }
}

@Module({ providers: [Drain, { provide: 'SECOND', useFactory: () => open('memory:second') }] })
class DrainModule {}

const outside = open('memory:outside')

@Module({
  imports: [DrainModule, SignalboxModule.forRoot({ source: 'memory:' })],
  providers: [Drain, { provide: 'OUTSIDE', useValue: outside }],
})
class ApplicationModule {}

async function start(): Promise<void> {
  const application = await NestFactory.createApplicationContext(ApplicationModule, { logger: false })
  const boxes = [application.get<Box>(BOX), application.get<Box>('SECOND', { strict: false })]
  const grants = await Promise.all(boxes.map(box => box.mutex('door').acquire()))
  waiting = Promise.all(boxes.map(box => box.mutex('door').acquire().catch(codeOf)))
  await application.close()
  console.log(await waiting)
  console.log(grants.map(grant => grant.signal.aborted))
  await using box = await outside
  console.log(await box.mutex('door').isLocked())
}

void start()
