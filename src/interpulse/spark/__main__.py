"""``python -m interpulse.spark VERB``: the programs on Spark; also the main file for spark-submit."""

from interpulse.cli.main import spark_main

main = spark_main()

if __name__ == "__main__":
    main(prog_name="python -m interpulse.spark")
