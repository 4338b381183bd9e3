"""This module runs the queries of a data directory on Spark, by `python -m pipeline.spark`."""

import sys

from pipeline.hidden_modules import hide_modules

if __name__ == "__main__":  # Spark's workers import it under another name
    hide_modules("pandas")
    from pipeline.spark.job import main

    sys.exit(main())
