#!/usr/bin/env node
import { main } from '../src/cli/main.js'
import { applications } from './applications.js'

await main(applications)
