/**
 * Sells the seats of a theatre, in several processes that share a file. No seat is sold twice, a client may send 30
 * requests a minute to all processes together, and one process reports each second.
 *
 * Environment: PORT, FILE (the sold seats), ENGINE (a URL of Signalbox; default Redis on this machine).
 */
import { readFile, writeFile } from 'node:fs/promises'
import { ConflictException, Controller, Injectable, Module, Post } from '@nestjs/common'
import { APP_FILTER, APP_GUARD, NestFactory } from '@nestjs/core'
import { Interval, ScheduleModule } from '@nestjs/schedule'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import {
  CurrentSlot,
  Locked,
  OncePerFleet,
  SignalboxExceptionFilter,
  SignalboxModule,
  SignalboxThrottlerStorage,
} from 'signalbox-nestjs'
import type { NamedSlot, Slot } from 'signalbox'

const { PORT = '3000', FILE = 'seats.json', ENGINE = 'redis://localhost:6379' } = process.env
const SEATS = 10

async function soldSeats(): Promise<number[]> {
  return JSON.parse(await readFile(FILE, 'utf8').catch(() => '[]')) as number[]
}

@Injectable()
class BoxOffice {
  /** Only one process at a time reads and writes the file. A caller that waits longer than 5 seconds gets a 503. */
  @Locked('seats', { wait: '5s' })
  async sell(): Promise<number> {
    const sold = await soldSeats()
    if (sold.length === SEATS) throw new ConflictException('sold out')
    const seat = sold.length + 1
    await writeFile(FILE, JSON.stringify([...sold, seat]))
    return seat
  }

  /** All processes call this method, and for each second one of them runs it. */
  @Interval(200)
  @OncePerFleet('1s', { name: 'report' })
  async report(@CurrentSlot() slot?: Slot | NamedSlot): Promise<void> {
    console.log(`${slot!.name}: ${(await soldSeats()).length} sold`)
  }
}

@Controller()
class TheatreController {
  constructor(private readonly office: BoxOffice) {}

  @Post('seats')
  async buy(): Promise<{ readonly seat: number }> {
    return { seat: await this.office.sell() }
  }
}

const throttler = ThrottlerModule.forRootAsync({
  inject: [SignalboxThrottlerStorage],
  useFactory: (storage: SignalboxThrottlerStorage) => ({ storage, throttlers: [{ limit: 30, ttl: 60_000 }] }),
})

@Module({
  imports: [SignalboxModule.forRoot({ source: ENGINE }), ScheduleModule.forRoot(), throttler],
  controllers: [TheatreController],
  providers: [
    BoxOffice,
    { provide: APP_FILTER, useClass: SignalboxExceptionFilter },
    { provide: APP_GUARD, useClass: ThrottlerGuard },
  ],
})
class TheatreModule {}

void NestFactory.create(TheatreModule, { logger: ['error', 'warn'] }).then(async application => {
  application.enableShutdownHooks()
  await application.listen(PORT)
})
